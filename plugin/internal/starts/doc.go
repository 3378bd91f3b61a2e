// Package starts decides which pod starts next, and when its start is over. It makes the limiter, and no other package
// of the daemon has it, which the linter checks. Package waiting gets a pod's [Ticket], and waits for it or asks for a
// slot or a reservation. Package signals reports readings, and package leases claims. Package policies says in which
// groups a pod is; this package puts them into the limiter.
//
// A [Pod] is what is known of one pod. [Starts] has a method for each event: of the runtime (Sandbox, Container,
// ContainerStarted ...), of kubelet (PodChanged, SetShutdown, SetPressure), of the configuration (Configure,
// SetPolicies), and of a process that waits (EnterRoom, EnterGate, and the methods of a [Process]). [Starts.Run] is the
// one loop: it advances the limiter, ends starts that are over, measures and learns what starts take, and passes events
// to the observer. [Ends] says why all waits end, or those in the gate.
//
// # The lock
//
// One lock lies on the way of a start. It guards the ledger: the limiter and the pods. An event asks the pod watch and
// matches the policies, takes the lock, decides, and releases the lock. What others are to learn of the decision is a list
// of effects, which happen after that. The ledger has no log, no pod watch and no callback, so only what computes is called
// under the lock. The groups of a pod are found before the lock is taken, and again if the policies have changed by then.
// If the limiter has changed, the loop is woken when the lock is released.
//
// With 110 pods that start, 500 that wait, and an adaptive limit, an event holds the lock for 0.9 ms of CPU time at the
// longest, when the runtime lists what exists. A container that has to wait takes 0.6 ms, and 0.3 ms in the mean
// (BenchmarkHold). If the sandboxes of all 110 are gone from that list, it takes less than 4 ms: all ends are one decision.
package starts
