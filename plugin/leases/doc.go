// Package leases limits how many pods of a group start at a time in the whole cluster,
// with nothing but the API server.
//
// Each place to start is a slot, and each slot a coordination.k8s.io Lease in the
// daemon's namespace, pod-pacemaker-POLICY-GROUP-NUMBER. A daemon that has a pod to
// start lists the Leases and takes a free slot: it creates the Lease, or replaces the one of a
// holder that is gone. Each write names the version that it replaces, so that the API server lets
// one of all rivals succeed. When the start ends, the daemon deletes the Lease. There is no leader,
// and nothing is watched.
//
// # Which pods may start
//
// A [Claimer] reads from the limiter how many pods of a group start and how many would,
// and tells it with SetClaims how many may. While no slot is free, each slot that
// was taken is good for one start: the limiter admits the next pod in the moment in which
// one ends, which would keep the slot on this node for as long as it has pods. Where a
// slot is free, so that no node lacks one, a slot is kept for the next pod.
//
// # Clocks
//
// No clock is compared with another. The holder of a slot relies on it for 20 s from the
// moment in which it sent the last write that succeeded, and renews it after about 10 s;
// the others take it 30 s after they first saw its version. So a node that is cut off starts
// no more pods on its slots before another node has one, unless its clock runs at less
// than two thirds of the rate of another. Starts that are under way then go on, as do those
// of a daemon that is stopped; the next daemon of this node finds its
// Leases by their holder. A node that dies gives its slots back after 30 s;
// a Lease that says that it lasts longer counts for a minute at most.
//
// The limit can be exceeded in four cases. A daemon that gets no CPU for more than 20 s, or whose
// machine was suspended, may admit a pod before it looks at the clock. Where a Lease is deleted by hand,
// or the API server's store is restored from a backup that does not have it, its holder starts pods until
// it renews, for 10 s at most. After the limit was lowered, slots above it
// count until they are given back; two nodes that take the last one in the same moment exceed it by one.
//
// # When a node looks
//
// A node that lacks a slot lists the Leases at random moments: about every 0.4 s, and in clusters of more than
// 50 nodes every 7.5 ms for each node. A node that holds a slot, or has just given one back, looks later
// than the others, so that they have their turn. A node that lacks nothing, but holds a slot, looks every
// 10 s; all other nodes do not look. A node takes half of the free slots at most.
//
// # What it costs
//
// Simulated for starts of 5 to 25 s, requests that take up to 10 ms and lists that are up to 40 ms old
// (go test ./plugin/leases -run Herd -v -large), renewals included:
//
//	nodes  pods each  slots  writes/start  of these too late  lists/s  longest without a turn
//	    1         40      1           3.3                  0      0.1
//	    3         40      2           3.3                0.1        5  2.7 rounds
//	   30         20      5           4.5                1.3       62  5.5 rounds
//	  100         12     10           5.3                2.1      105  5.8 rounds
//	1,000          1     20           4.5                1.3       68
//	1,000          1    100           4.3                1.1       74
//
// A round is the time in which each node has one turn on average. The lists are the mean of the herd; while all
// 1,000 nodes wait they are 130 a second, each answered from the API server's memory. A list is about 700 bytes for
// each slot in use. A free slot is idle for less than 0.3 s where many nodes want it. A node that is alone with a limit of
// one waits 0.5 to 0.75 s between two starts, and in a cluster of 1,000 nodes 10 to 15 s.
//
// Leases whose holder died and whose group needs nothing are deleted after 10 minutes
// by a daemon that looks, and all of a policy's when the policy is: it owns them.
//
// # Without the API server
//
// A daemon whose requests have failed for OpenAfter opens the policy on its node: it
// holds no pod, and that is said. This includes requests that are forbidden, because the
// daemon's role is missing. Until then, no pod starts that has no slot; starts under way
// go on. When the API server answers again, slots are taken for the starts under way. Where no pod has
// needed a slot for a moment, the fault is forgotten: the next herd waits for OpenAfter again, if it lasts.
package leases
