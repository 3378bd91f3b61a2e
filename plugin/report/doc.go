// Package report writes to the API server how pods start, without a stampede: the
// daemon of each node writes one small PacemakerNode, and one of them, elected by a
// Lease, sums up in the status of the StartPolicies what counts against their limits.
//
// A [Node] writes only what has changed, at most once in an interval, and no node
// watches what another writes. A [Summary] is run by the elected daemon alone: it
// watches the PacemakerNodes and writes the sums, again only what has changed. The
// status of a policy is for one writer: were each daemon to write its own part of it, each
// of n writes would go to n watches.
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
//   - Watches: one, of all PacemakerNodes, by the elected daemon, which gets each
//     of these writes, and keeps about 500 bytes for each node. (The garbage collector
//     of Kubernetes watches the metadata of every kind, so of this one too.) What each
//     daemon watches to pace pods comes beside: the pods of its node, its Node, the
//     configs and the policies, 20,000 watches for 5,000 nodes.
//   - Sums: one write for each StartPolicy every max(30 s, n x 10 ms), only where they
//     have changed. Every daemon watches the policies, so each of these writes goes
//     to n watches with about 3 KB, that is 100 a second at most for each policy. What a
//     node tells of policies stands in its PacemakerNode, about 300 bytes for each group, of
//     64 groups at most; the status of a policy has at most 32 groups.
//   - Election: the daemons that are not elected read the Lease every
//     max(5 s, n x 20 ms), stretched by up to 2.2 times by chance; the elected one
//     reads and writes it once in that time.
//
// For 5,000 nodes that is, while pods start on all of them: 100 writes of 1.3 KB a
// second, 100 watch events of the same size to one client, 100 watch events of 3 KB
// a second to all clients for each policy, and about 31 reads of the Lease a second.
// While nothing happens it is 8 writes and 31 reads a second. (5,000 kubelets write
// 500 Leases a second, and a status of each Node every 5 minutes.) In a cluster of
// 100 nodes it is 10 writes a second while pods start on all of them, and 0.2 while
// nothing happens.
//
// Counted by the metrics of a kube-apiserver 1.36.3 with 500 daemons simulated by
// this package, crd and podwatch (make e2e-full E2EFLAGS='-run TestStampede'): 500
// watches each of pods, nodes, configs and policies, and 2 of PacemakerNodes. While
// each daemon had something new to tell all the time, 33 writes a second on a machine
// with no CPU to spare, 56 watch events of them of 1.2 KB each, the garbage collector's
// among them, one write of the policy's status in 48 s, which goes to 500 watches, and 25
// reads of the Lease a second. While none had, no write of a PacemakerNode, and 31 reads.
package report
