// Package report writes to the API server how pods start, without a stampede: the
// daemon of each node writes one small PacemakerNode, and the daemons take turns to
// sum up in the status of the StartPolicies what counts against their limits.
//
// A [Node] writes only what has changed, at most once in an interval, and no node
// watches what another writes. A [Summary] looks from time to time at a Lease. Where
// that has not changed for the interval, it lists the PacemakerNodes, replaces the Lease,
// which the API server lets one of several daemons do, and writes the sums, again only
// what has changed. There is no leader, and nothing to take over from one. The
// status of a policy is for one writer at a time: were each daemon to write its own part of
// it, each of n writes would go to n watches.
//
// # What it costs
//
// Every interval grows with the number of nodes, which stands in the Lease that each
// daemon reads anyway. So the load on the API server has a bound that does not depend on
// the size of the cluster. n is the number of nodes, all figures are for the whole cluster,
// and a PacemakerNode has about 1.3 KB with its metadata:
//
//   - PacemakerNodes, while pods start everywhere: a write for each node every
//     max(10 s, n x 10 ms), so 100 writes a second at most, and never more than n in 10 s.
//     While nothing changes: one every 10 minutes as a sign of life.
//   - Watches: none. (The garbage collector of Kubernetes watches the metadata of every
//     kind, so of this one too.) What each daemon watches to pace pods comes beside: the pods
//     of its node, its Node, the configs and the policies, 20,000 watches for 5,000 nodes.
//   - Looks: each daemon reads the Lease every max(20 s, n x 20 ms), stretched by up to half by
//     chance, so 50 reads a second at most.
//   - Sums: every max(20 s, n x 20 ms) at most, one list of all PacemakerNodes in pages of 500, one
//     write of the Lease, one read of each StartPolicy, and one write of each whose status has
//     changed. Every daemon watches the policies, so each of these writes goes
//     to n watches with about 3 KB, that is 50 a second at most for each policy. What a
//     node tells of policies stands in its PacemakerNode, about 300 bytes for each group, of
//     64 groups at most; the status of a policy has at most 32 groups.
//
// For 5,000 nodes that is, while pods start on all of them: 100 writes of 1.3 KB a
// second, a list of 6.5 MB every 100 s or more, 50 watch events of 3 KB
// a second to all clients for each policy, and about 40 reads of the Lease a second.
// While nothing happens it is 8 writes and 40 reads a second. (5,000 kubelets write
// 500 Leases a second, and a status of each Node every 5 minutes.) In a cluster of
// 100 nodes it is 10 writes a second while pods start on all of them, and 0.2 while
// nothing happens.
//
// The scenario TestStampede (make e2e-full E2EFLAGS='-run TestStampede') holds 500 simulated daemons
// to these figures, by the metrics of a real API server.
package report
