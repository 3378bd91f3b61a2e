// Package report writes to the API server how pods start, with a limited load. The daemon of each node writes one small
// PacemakerNode. The daemons take turns to sum up the PacemakerNodes in the status of the StartPolicies and the
// PacemakerConfigs.
//
// [Reporter.RunNode] writes only changes, at most once in an interval, and no daemon watches PacemakerNodes.
// [Reporter.RunSummary] reads a Lease from time to time. If the Lease has not changed for the interval, it replaces the
// Lease, which the API server allows only one of several daemons. Then it lists the PacemakerNodes, adding up each page as
// it arrives, writes their number into the Lease, and writes the sums that have changed. There is no leader. If a daemon
// took the Lease and cannot list, the sums are an interval late, and that daemon lets the others try first. The status of an
// object has one writer at a time, because every write of it goes to the watches of all n daemons.
//
// # What it costs
//
// Every interval grows with the number of nodes, which each daemon reads from the Lease. So the load on the API server
// is limited in a cluster of any size. Below, n is the number of nodes, and all figures are for the whole cluster. A
// PacemakerNode has about 1.6 KB with its metadata, 2.2 KB with one group of a StartPolicy, 16 KB with 32 groups, and 31 KB
// with 64, which is the most. Half of that is what the API server notes of who wrote which field.
//
//   - PacemakerNodes, while pods start on all nodes: each node writes every max(10 s, n x 10 ms). That is at most 100
//     writes a second, and at most n in 10 s. While nothing changes, each node writes every 10 minutes as a sign of life.
//     A write that failed is tried again after the same interval.
//   - While n is not known, it counts as 1,000, and a daemon writes and reads ever less often: every 50 s in the end, and
//     after errors every five minutes. A daemon that has just started does not know n: those that start together write
//     within 10 s, and read the Lease within 2 s. In a new cluster, the first sum follows some 10 s after the start.
//   - Watches: none, apart from the garbage collector of Kubernetes, which watches the metadata of every kind. To pace
//     pods, each daemon also watches the pods of its node, its Node, the configs and the policies: 20,000 watches for
//     5,000 nodes.
//   - Reads: each daemon reads the Lease every max(20 s, n x 20 ms), plus up to half of that at random. That is at most
//     50 reads a second.
//   - Sums, at most every max(20 s, n x 20 ms): one list of all PacemakerNodes in pages of 50, two writes of the Lease,
//     one read of each StartPolicy and PacemakerConfig, and one write of each whose status has changed. Such a write goes
//     to n watches with 3 KB each, or 16 KB if it has 32 groups, which is the most. That is at most 50 watch events a second
//     for each object. The status of a config changes only when nodes come, go, or take it or a generation of it into force.
//
// With 5,000 nodes, while pods start on all of them, that is, with one group and with 32 groups on each node: 100 writes of
// 2.2 or 16 KB a second, a list of 11 or 82 MB every 100 s or more, 50 watch events of 3 or 16 KB a second for each policy,
// and about 40 reads of the Lease a second. While nothing changes it is 8 writes and 40 reads a second. For comparison,
// 5,000 kubelets write 500 Leases a second, and the status of each Node every 5 minutes. With 100 nodes it is 10 writes a
// second while pods start on all of them, and 0.2 while nothing changes.
//
// The daemon whose turn it is decodes one page at a time, and keeps the sums of at most 20,000 groups: for 5,000 nodes with
// 32 groups each its process has 65 MB and uses 6 s of CPU time, with 64 groups 130 MB and 11 s. The chart limits it to
// 256 MiB.
//
// The scenario TestStampede (make e2e-full E2EFLAGS='-run TestStampede') checks these figures with 500 simulated daemons
// and the metrics of a real API server.
package report
