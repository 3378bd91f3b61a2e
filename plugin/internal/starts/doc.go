// Package starts decides which pod starts next, and when its start is over. It is the only package that joins the
// queue of the limiter, and ends starts. Package waiting gets a pod's ticket from it, waits on the ticket, and may ask
// it for a slot (hold) or a reservation (room). Package signals gives the limiter readings, package leases claims.
//
// [RuntimeEvents] handles the events of the runtime (Sandbox, Container, ContainerStarted ...) and writes them
// into the book of pods. [Starts] handles the reports of kubelet (PodChanged) and the requests of package
// waiting (Arrive, ReserveGate, HookTicket). Both turn them into calls of the limiter. [Starts.Run] is the one loop: it
// advances the limiter, ends starts that are over, measures and learns what starts take, and passes events to the
// observer.
// [Policies] puts StartPolicies in force. [Valve] ends waits: by the mode or when the node shuts down, those in the
// gate and in the room; when the node is short of a resource, those in the gate.
//
// # Locks
//
// A start takes two locks: that of the [Ledger], and then the limiter's. The Ledger's lock guards the book of pods
// and the matcher of policies, which have no lock and only compute. While it is held, nothing else is called but the
// limiter: the Ledger has no log, no events and no pod watch to call. It returns what others need to know, and they
// are called afterwards. Package throttle says what the limiter calls under its lock: nothing that waits, logs, reads
// or writes. TestLedgerLockIsFreeDuringOtherCalls, TestLedgerCanCallOnlyTheLimiter, TestEveryMutexIsALeaf and
// TestTheLimiterOnlyComputes hold this rule.
package starts
