// Package reasons has the words for why a start waits, is admitted or has ended. They mean the same in
// the API, in events, logs and metrics, and on the command line.
package reasons

// Reason is one word for why something was decided. The zero value is no reason.
type Reason string

// Reasons to wait.
const (
	Concurrency    Reason = "Concurrency"    // as many starts as allowed are under way
	Rate           Reason = "Rate"           // the token bucket is empty
	CPULoad        Reason = "CPULoad"        // the CPUs are too busy
	IOLoad         Reason = "IOLoad"         // the CPUs wait for I/O too much of the time
	LoadAverage    Reason = "LoadAverage"    // too many processes run or wait for a CPU or a disk
	Pressure       Reason = "Pressure"       // processes stall for lack of CPU, memory or I/O
	Pulling        Reason = "Pulling"        // as many pods as allowed are between their sandbox and their first container
	Queued         Reason = "Queued"         // pods before it in the queue start first
	NotPresent     Reason = "NotPresent"     // no limit holds it, but kubelet has not retried it since it was refused
	Preparing      Reason = "Preparing"      // nothing holds it: kubelet pulls its images, or cannot make its first container yet
	StartAfter     Reason = "StartAfter"     // a pod that the config names in startAfter is not ready
	GateFull       Reason = "GateFull"       // the gate is full: as many pods wait or are expected there as will start in time
	PolicyStarting Reason = "PolicyStarting" // as many pods of the policy's group as allowed start
	PolicyRunning  Reason = "PolicyRunning"  // as many pods of the policy's group as allowed run
	PolicyPacer    Reason = "PolicyPacer"    // as many pods of the group start as its pacer allows for the number that is ready
	PolicyClaim    Reason = "PolicyClaim"    // this node has no free slot of the cluster for the policy's group
	Unadmittable   Reason = "Unadmittable"   // the pod alone exceeds what the policy's group may use when it runs
)

// Reasons of an admission.
const (
	WithinLimits Reason = "WithinLimits" // every limit allowed it
	SlotLent     Reason = "SlotLent"     // no start makes progress, so a slot was lent
	Exempt       Reason = "Exempt"       // the pod is not made to wait
	MaxWait      Reason = "MaxWait"      // it waited as long as a pod may; admitted over the limit
	Adopted      Reason = "Adopted"      // the start was under way when the daemon learned of it
	LastResort   Reason = "LastResort"   // it waited for too long, and nothing was admitted: a fault of the daemon
	ByHand       Reason = "ByHand"       // an administrator admitted it, whatever the limits say
)

// Reasons of an end.
const (
	Ready       Reason = "Ready"       // the containers of the pod are ready
	Settled     Reason = "Settled"     // its containers have no probe and have run for settleTime
	Inferred    Reason = "Inferred"    // its readiness is not known, and its containers run and no longer use the CPU
	Completed   Reason = "Completed"   // the pod succeeded
	Failed      Reason = "Failed"      // the pod failed
	Exited      Reason = "Exited"      // its containers exited; starting them again is another start
	CrashLoop   Reason = "CrashLoop"   // a container is in CrashLoopBackOff
	Lapsed      Reason = "Lapsed"      // it had a lent slot when its app began, and no slot was free: the app is a start of its own
	NotMade     Reason = "NotMade"     // no process of it ran, and none of its containers is left; kubelet's next try is another start
	SandboxGone Reason = "SandboxGone" // the pod's sandbox was stopped
	Deleted     Reason = "Deleted"     // the pod was deleted
	Stuck       Reason = "Stuck"       // the start took longer than startTimeout
	Abandoned   Reason = "Abandoned"   // kubelet has not retried the pod for ten minutes, or cannot make its first container
	// GateExpired ends a wait, not the ticket: the process could wait no longer, and a limit holds the ticket. The ticket
	// keeps its place in the queue.
	GateExpired Reason = "GateExpired"
)
