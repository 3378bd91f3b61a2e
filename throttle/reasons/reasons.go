// Package reasons has the words that say why a start waits, goes on or has ended. They mean
// the same in the API, in events, logs and metrics, and on the command line.
package reasons

// A Reason is the one word that says why something was decided. The zero value says nothing.
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
