package throttle

// A Reason is the one word that says why something was decided. The same words
// appear in the API, events, logs, metrics and on the command line.
type Reason string

// Reasons to wait.
const (
	Concurrency    Reason = "Concurrency"    // as many starts as allowed are under way
	Rate           Reason = "Rate"           // the token bucket is empty
	CPULoad        Reason = "CPULoad"        // so much of the CPU time is used
	IOLoad         Reason = "IOLoad"         // so much of the CPU time waits for I/O
	LoadAverage    Reason = "LoadAverage"    // so many processes run or wait for a CPU or a disk
	Pressure       Reason = "Pressure"       // processes stand still for want of CPU, memory or I/O
	Pulling        Reason = "Pulling"        // enough pods are between their sandbox and their first container
	Queued         Reason = "Queued"         // others that are present go first; to pull, those of a higher priority
	NotPresent     Reason = "NotPresent"     // no limit holds it, but nobody has come back for it since it was refused
	GateRoom       Reason = "GateRoom"       // enough pods wait near their turn already
	PolicyStarting Reason = "PolicyStarting" // so many pods of the policy's group start already
	PolicyRunning  Reason = "PolicyRunning"  // so many pods of the policy's group run already
	PolicyPacer    Reason = "PolicyPacer"    // as many of the group start as its pacer allows beside those that are ready
	PolicyClaim    Reason = "PolicyClaim"    // this node holds no free claim for the policy's group
	Unadmittable   Reason = "Unadmittable"   // the pod alone exceeds what the policy's group may use when it runs
)

// Reasons of an admission.
const (
	WithinLimits Reason = "WithinLimits" // every limit allowed it
	SlotLent     Reason = "SlotLent"     // no start makes progress, so one more was lent
	Exempt       Reason = "Exempt"       // the pod is not made to wait
	MaxWait      Reason = "MaxWait"      // it waited as long as a pod may wait; admitted over the limit
	GateDeadline Reason = "GateDeadline" // its process could wait no longer; admitted over the limit
	Adopted      Reason = "Adopted"      // the start was under way when the daemon came to know of it
)

// Reasons of an end.
const (
	Ready       Reason = "Ready"       // the containers of the pod are ready
	Settled     Reason = "Settled"     // without a probe: its containers have run for the settle time
	Inferred    Reason = "Inferred"    // nobody can say whether it is ready; its containers run and use no CPU any more
	Completed   Reason = "Completed"   // the pod succeeded
	Failed      Reason = "Failed"      // the pod failed
	Exited      Reason = "Exited"      // its containers exited, and may be started again as a start of its own
	CrashLoop   Reason = "CrashLoop"   // a container is in CrashLoopBackOff
	SandboxGone Reason = "SandboxGone" // the pod's sandbox was stopped
	Deleted     Reason = "Deleted"     // the pod was deleted
	Stuck       Reason = "Stuck"       // the start took longer than the start timeout
	Abandoned   Reason = "Abandoned"   // nobody came back for the ticket
	// GateExpired is the end of a wait only: the process could wait no longer, and another
	// start was above the limit. The ticket keeps its place.
	GateExpired Reason = "GateExpired"
)

// State is where a ticket stands in the life of a start.
type State string

// The states of a ticket.
const (
	Waiting  State = "Waiting"
	Starting State = "Starting"
	Started  State = "Started"
	Gone     State = "Gone"
)

// tellsPace tells whether a start that ended so says how long starts take. One that
// broke off does not.
func (r Reason) tellsPace() bool { return r.tellsReady() || r == Completed }

// tellsReady tells whether a start that ended so has made its pod ready.
func (r Reason) tellsReady() bool { return r == Ready || r == Settled || r == Inferred }

// breaksOff tells whether a start that ended so was ended by its containers, and not
// by anybody who wants the pod no more.
func (r Reason) breaksOff() bool { return r == Exited || r == CrashLoop || r == Failed }

// endState tells where an end leads: a start that was deleted or given up is
// Gone, any other is Started.
func (r Reason) endState() State {
	switch r {
	case Deleted, Abandoned, SandboxGone:
		return Gone
	default:
		return Started
	}
}
