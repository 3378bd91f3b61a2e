// Package leases limits how many pods of a group start at a time in the whole cluster,
// with nothing but the API server.
//
// Each place to start is a slot, and each slot a coordination.k8s.io Lease in the
// daemon's namespace, pod-pacemaker-POLICY-GROUP-NUMBER. A daemon that has a pod to
// start takes a slot: it makes the Lease, or replaces the one of a holder that is gone
// by naming the version that it saw, so that the API server lets one of all
// rivals succeed. When the start ends, it deletes the Lease. There is no leader.
//
// # Who may start
//
// A [Claimer] reads from the limiter how many pods of a group start and how many would,
// and tells it with SetClaims how many may. While others may want a slot, each slot that
// was taken is good for one start: the limiter admits the next pod in the moment in which
// one ends, which would keep the slot on this node for as long as it has pods. Where a
// slot has been free for a while, so that nobody lacks one, it is kept for the next pod.
//
// # Clocks
//
// No clock is compared with another. Whoever holds a slot relies on it for 20 s from the
// moment in which it sent the last write that succeeded, and renews it after about 10 s;
// the others take it 30 s after they saw its last change. So a node that is cut off starts
// no more pods on its slots before anybody else has one, unless its clock runs at less
// than two thirds of the rate of another. Starts that are under way then go on: nobody
// ends them. So do those of a daemon that is stopped; the next one on this node finds its
// Leases by their holder. A node that dies gives its slots back after 30 s;
// a Lease that says that it lasts longer counts for a minute at most.
//
// Three things are beyond that. A daemon that gets no CPU for more than 20 s may, when it
// goes on, admit a pod before it looks at the clock. One on a machine that was suspended,
// whose clock stood meanwhile, relies on its slots for what was left of the 20 s. And where
// somebody deletes a Lease by hand, its holder starts pods until the watch tells of it.
//
// Where the store of the API server is restored from a backup, the first write that succeeds,
// or the Lease that is read after two conflicts, is older than it may be: then all Leases are
// listed and watched anew. A slot that is free in the backup and held by somebody can be taken
// by a daemon that saw nothing of the holder, so that for 20 s the limit may be exceeded.
//
// A lower limit is in force for whoever takes a slot from then on: the slots above it
// count until they are given back. Two that take the last one in the same moment, while
// some above it are still held, exceed the limit by one.
//
// # Who takes a free slot
//
// All that want a slot watch the Leases, so they see at about the same time that one is
// free. Each tries at a random moment, at a rate that all together make about one try in
// a tenth of a second, which doubles for as long as the slot stays free; see spread. How
// long slots stay free tells each how many rivals it has. Whoever sees each of the others
// have its turn again and again tries earlier.
//
// # What it costs
//
// An admission costs two requests where nobody else wants the slot (make, delete), and
// none where the slot is kept for the next pod; a start that takes longer than 10 s costs
// one more every 10 s. Simulated (BenchmarkHerd, eight runs of each, with -benchtime 8x), for
// starts of 5 to 25 s, requests that take up to 10 ms and watches that take up to 40 ms,
// renewals included:
//
//	nodes  pods each  slots  requests/start  conflicts/start  idle    longest without a turn
//	    1        100      1             3.1              0     94 ms
//	    3        100      2             3.3              0.2  112 ms  3.1 rounds
//	   30         40      5             3.8              0.7   74 ms  2.9 rounds
//	  100         30     10             3.9              0.7   68 ms  2.7 rounds
//	1,000          1     20             3.9              0.7   68 ms
//	1,000          1    100             3.6              0.6   69 ms
//
// Idle is the time from a release until another node has the slot, while pods wait; a
// round is the time in which each node has one turn on average, and the figure is the
// worst of all nodes in eight runs. With S slots in use that are S/10 renewals a second,
// and a request for about every four seconds of a start in all: 20 slots and starts of
// 15 s cost 5 writes a second, whatever the number of nodes.
//
// Each of these writes goes, as a watch event of about 700 bytes, to every daemon that
// has a pod which waits or starts under a policy of the scope Cluster: with 1,000 of them
// and 20 slots, 5,000 events a second. Such a daemon asks whether the API server is there
// when it has heard nothing for max(5 s, nodes x 10 ms). Daemons without such a pod
// neither watch nor ask; they stop five minutes after the last one.
//
// Leases whose holder died and that nobody wants any more are deleted after 10 to 20
// minutes by a daemon that watches, and all of a policy's when the policy is: it owns them.
//
// # Without the API server
//
// A daemon whose requests have failed for OpenAfter opens the policy on its node: it
// holds nobody, and that is said. This includes requests that are forbidden, because the
// daemon's role is missing. Until then, no pod starts that has no slot; starts under way
// go on. When the API server answers again, slots are taken for the starts under way.
package leases
