// Package starts decides which pod starts next, and when its start is over. It makes the limiter, and no other package
// of the daemon has it, which the linter checks. Package waiting gets a pod's [Ticket], and waits for it or asks for a
// slot or a reservation. Package signals reports readings, and package leases claims, by what [Starts.Limiter] returns.
// The matcher of package policies sets the groups of pods, under the lock of this package.
//
// [RuntimeEvents] handles the events of the runtime (Sandbox, Container, ContainerStarted ...) and writes them
// into the book of pods. [Starts] handles the reports of kubelet (PodChanged) and the requests of package waiting
// (Arrive, HookTicket, and the methods of a Ticket). Both turn them into calls of the limiter. [Starts.Run] is the one
// loop: it advances the limiter, ends starts that are over, measures and learns what starts take, and passes events to
// the observer.
// [Policies] puts StartPolicies in force. [Valve] ends waits: by the mode or when the node shuts down, those in the
// gate and in the room; when the node is short of a resource, those in the gate.
//
// # Locks
//
// A start takes two locks: that of the [Ledger], and then the limiter's. The Ledger's lock guards the book of pods
// and the matcher of policies, which have no lock and only compute. While it is held, the limiter is called, and
// what only computes: the Ledger has no log, no events and no pod watch to call. It returns what others need to know,
// and they are called afterwards. Package throttle says what the limiter calls under its lock: nothing that waits,
// logs, reads or writes. TestLedgerLockIsFreeDuringOtherCalls, TestLedgerCanCallOnlyTheLimiter, TestEveryMutexIsALeaf
// and TestTheLimiterOnlyComputes hold this rule.
package starts
