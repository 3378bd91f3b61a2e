package throttle

// A Reason is the one word that says why something was decided. The same words
// appear in the API, events, logs, metrics and on the command line.
type Reason string

// Reasons to wait.
const (
	// Concurrency: as many starts as allowed are under way.
	Concurrency Reason = "Concurrency"
	// Rate: the token bucket is empty.
	Rate Reason = "Rate"
	// CPULoad: so much of the CPU time is used.
	CPULoad Reason = "CPULoad"
	// IOLoad: so much of the CPU time waits for I/O.
	IOLoad Reason = "IOLoad"
	// LoadAverage: so many processes run or wait for a CPU or a disk.
	LoadAverage Reason = "LoadAverage"
	// Pressure: processes stand still for want of CPU, memory or I/O.
	Pressure Reason = "Pressure"
	// Pulling: enough pods are between their sandbox and their first container.
	Pulling Reason = "Pulling"
	// Queued: others that are present go first, or, to pull, those of a higher priority
	// that will be in seconds.
	Queued Reason = "Queued"
	// NotPresent: no limit holds it, but it was refused before, and nobody has come back
	// for it yet.
	NotPresent Reason = "NotPresent"
	// GateRoom: enough pods wait near their turn already.
	GateRoom Reason = "GateRoom"
	// PolicyStarting: so many pods of the policy's group start already.
	PolicyStarting Reason = "PolicyStarting"
	// PolicyRunning: so many pods of the policy's group run already.
	PolicyRunning Reason = "PolicyRunning"
	// PolicyPacer: as many pods of the policy's group start as its pacer allows beside
	// those that are ready.
	PolicyPacer Reason = "PolicyPacer"
	// PolicyClaim: this node holds no free claim for the policy's group.
	PolicyClaim Reason = "PolicyClaim"
	// NodeShutdown: the node is being shut down, so nothing starts that has to wait. The
	// limiter itself never gives it.
	NodeShutdown Reason = "NodeShutdown"
	// Unadmittable: the pod alone exceeds what the policy's group may use when it runs.
	Unadmittable Reason = "Unadmittable"
)

// Reasons of an admission.
const (
	// WithinLimits: every limit allowed it.
	WithinLimits Reason = "WithinLimits"
	// SlotLent: nobody who holds a slot makes progress, so one more was lent.
	SlotLent Reason = "SlotLent"
	// Exempt: the pod is not made to wait.
	Exempt Reason = "Exempt"
	// MaxWait: it waited as long as a pod may wait; admitted over the limit.
	MaxWait Reason = "MaxWait"
	// GateDeadline: whoever stood there could wait no longer; admitted over the
	// limit.
	GateDeadline Reason = "GateDeadline"
	// Adopted: the start was under way when the daemon came to know of it.
	Adopted Reason = "Adopted"
)

// Reasons to let a start go on though a limit holds it; the limiter itself never
// does.
const (
	// Shadow: the mode is Shadow, so the wait is only reported.
	Shadow Reason = "Shadow"
	// Off: the mode is Off, so there are no limits.
	Off Reason = "Off"
)

// Reasons of an end.
const (
	// Ready: the containers of the pod are ready.
	Ready Reason = "Ready"
	// Settled: no probe says when the pod is ready; its containers have run for
	// the settle time.
	Settled Reason = "Settled"
	// Inferred: nobody can say whether the pod is ready; its containers run and
	// have stopped using CPU.
	Inferred Reason = "Inferred"
	// Completed: the pod succeeded.
	Completed Reason = "Completed"
	// Failed: the pod failed.
	Failed Reason = "Failed"
	// Exited: the containers of the pod exited, and may be started again as a start of
	// its own.
	Exited Reason = "Exited"
	// CrashLoop: a container is in CrashLoopBackOff.
	CrashLoop Reason = "CrashLoop"
	// SandboxGone: the pod's sandbox was stopped.
	SandboxGone Reason = "SandboxGone"
	// Deleted: the pod was deleted.
	Deleted Reason = "Deleted"
	// Stuck: the start took longer than the start timeout.
	Stuck Reason = "Stuck"
	// Abandoned: nobody came back for the ticket.
	Abandoned Reason = "Abandoned"
	// GateExpired: whoever stood there could wait no longer, and another start
	// was above the limit. The ticket keeps its place; only the wait ended.
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
func (r Reason) tellsPace() bool {
	switch r {
	case Ready, Settled, Inferred, Completed:
		return true
	default:
		return false
	}
}

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
