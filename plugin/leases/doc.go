// Package leases limits how many pods of a group start at the same time in the whole cluster.
// It needs only the API server.
//
// A slot is the right to start one pod, and each slot is a coordination.k8s.io Lease in the
// daemon's namespace, named pod-pacemaker-POLICY-GROUP-NUMBER. A daemon that has a pod to start lists
// the Leases and takes a free slot: it creates the Lease, or replaces the Lease of a holder that is
// gone. Each write names the version that it replaces, so the API server accepts one of several
// rivals. When the start ends, the daemon deletes the Lease. There is no leader, and nothing is
// watched.
//
// # Which pods may start
//
// A [Claimer] reads from the limiter how many pods of a group are starting and how many more would
// start, and sets with SetClaims how many may. While no slot is free, a slot is good for one start
// only. Otherwise the limiter would admit the next pod at the moment in which a start ends, and the
// slot would stay on this node as long as the node has pods. While a slot is free, no other node
// lacks one, and a slot is kept for the next pod.
//
// # Clocks
//
// Clocks of different nodes are never compared. The holder relies on a slot for 20 s after it sent
// the last write that succeeded, and renews it after about 10 s. Other nodes take a slot 30 s after
// they first saw its version. So a node that is cut off stops starting pods on its slots before
// another node takes them, unless its clock runs at less than two thirds of the speed of the other
// clock. Starts that are under way then continue. So do those of a daemon that is stopped; the next
// daemon of this node finds its Leases by their holder. The slots of a node that dies are free after
// 30 s, whatever duration their Leases state.
//
// The limit can be exceeded in four cases:
//
//   - A daemon that gets no CPU for more than 20 s, or whose machine was suspended, may admit a pod
//     before it looks at the clock.
//   - If a Lease is deleted by hand, or the API server's store is restored from a backup without it,
//     its holder starts pods until its next renewal, for 10 s at most.
//   - After the limit was lowered, slots above it count until they are given back.
//   - Two nodes that take the last slot at the same moment exceed the limit by one.
//
// # When a node looks for slots
//
// A node that lacks a slot lists the Leases at random moments: about every 0.4 s, and in clusters of
// more than 50 nodes every 7.5 ms times the number of nodes. A node that holds a slot, or has just
// given one back, looks later than the others, so that they get their turn. It takes at most half of
// the free slots. A node that holds a slot and lacks none looks every 10 s. All other nodes do not
// look.
//
// # What it costs
//
// A start costs 3 to 6 writes, with its renewals. In a herd on all nodes at once, up to two of them come
// too late, and up to 130 lists a second are read, which the API server answers from memory:
// TestAHerdSharesTheSlots has the figures. A list has about 700 bytes for each slot in use. A free slot is
// idle for less than 0.3 s if many nodes want it. A node that alone wants the only slot of a limit of one
// waits 0.5 to 0.75 s between two starts, and in a cluster of 1,000 nodes 10 to 15 s.
//
// A daemon that looks deletes a Lease after 10 minutes if its holder died and its group needs nothing.
// The Leases of a policy that is deleted are garbage-collected, because the policy owns them.
//
// # Without the API server
//
// When the requests of a daemon have failed for OpenAfter, the policy stops holding pods on its node,
// and the daemon logs it. Requests that are forbidden, because the daemon's role is missing, count as
// failed. Until then, a pod without a slot does not start, and starts under way continue. When the API
// server answers again, the daemon takes slots for the starts under way. When no pod has needed a slot
// for a moment, the fault is forgotten: if it lasts, the next herd waits for OpenAfter again.
package leases
