// Package starts decides which pod starts next, and when its start is over. It makes the limiter, and no other package
// of the daemon has it, which the linter checks. Package waiting gets a pod's [Ticket], and waits for it or asks for a
// slot or a reservation. Package signals reports readings, and package leases claims, to the [Ledger].
// Package policies says in which groups a pod is; this package puts them into the limiter.
//
// A [Pod] is what is known of one pod.
//
// [RuntimeEvents] handles the events of the runtime (Sandbox, Container, ContainerStarted ...). [Starts] handles the reports of kubelet (PodChanged) and the requests of package waiting
// (Arrive, HookTicket, and the methods of a Ticket). Both turn them into calls of the limiter. [Starts.Run] is the one
// loop: it advances the limiter, ends starts that are over, measures and learns what starts take, and passes events to
// the observer.
// [Policies] puts StartPolicies in force. [Valve] ends waits: by the mode or when the node shuts down, those in the
// gate and in the room; when the node is short of a resource, those in the gate.
//
// # The lock
//
// One lock lies on the way of a start, the [Ledger]'s. It guards the limiter and the pods. While it
// is held, no other package is called but the limiter, which only computes: the Ledger has no log, no events, no policies
// and no pod watch to call, only values of theirs. Pods are matched with the policies before the lock is taken, and again
// if the policies have changed by then. The Ledger returns what others need to know, and they are called afterwards. If
// the limiter has changed, the loop is woken when the lock is released.
//
// With 110 pods that start, 500 that wait, and an adaptive limit, an event holds the lock for 2.2 ms of CPU time at the
// longest, when a container asks for a place in the gate. The others take 1.9 ms at most (BenchmarkHold).
//
// TestLedgerLockIsFreeDuringOtherCalls, TestLedgerCanCallOnlyTheLimiter, TestEveryMutexIsALeaf and
// TestTheLimiterOnlyComputes hold this rule.
package starts
