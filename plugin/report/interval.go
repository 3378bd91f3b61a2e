package report

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// perNode is what each node adds to an interval, so that all nodes together act at most 100 times a second.
	perNode = 10 * time.Millisecond
	// mostNodes is the greatest number of nodes that the Lease may report. It is ten times what Kubernetes supports. A
	// wrong number, which any daemon can write, must not silence the others for days.
	mostNodes = 50_000

	// nodesUnknown is the number of nodes that counts while the number is not known: after a power cut, the daemons of a
	// cluster of any size begin at the same moment. It is known within 2 s after the start of a daemon that can read the Lease.
	nodesUnknown = 1000
	// nodesSupported is the most that Kubernetes supports.
	nodesSupported = 5000

	leastWrite = 10 * time.Second // between two writes of one PacemakerNode
	leastSum   = 20 * time.Second // between two sums, and between two reads of the Lease
	// nodesInPage bounds the memory of a sum: a PacemakerNode with 64 groups has 31 KB, and several times that once decoded.
	nodesInPage = 50
	// mostGroupsSummed is how many groups of all policies are summed up one by one. Users may make any number of groups.
	mostGroupsSummed = 20_000

	// heartbeat, and up to a quarter more, is the time after which a PacemakerNode is written even without a change. A
	// PacemakerNode that was not written for v1alpha1.NodeGoneAfter does not count: two heartbeats were due by then.
	heartbeat = 10 * time.Minute
)

// interval returns the least time, or a longer one for a large cluster.
func interval(least time.Duration, nodes int) time.Duration {
	return max(least, time.Duration(min(nodes, mostNodes))*perNode)
}

// sumInterval returns the shortest time between two sums in a cluster of this many nodes.
func sumInterval(nodes int) time.Duration { return max(leastSum, 2*interval(0, nodes)) }

// laterStill returns how long a daemon that does not know the number of nodes waits after it has waited for last. Nobody
// knows how many others do the same, or fail likewise. So it waits ever longer, and much longer after an error.
func laterStill(last time.Duration, err error) time.Duration {
	if err != nil {
		return min(2*last+leastWrite, heartbeat/2)
	}
	return min(last+leastWrite, interval(leastWrite, nodesSupported))
}

// sumTimeout returns the longest time of one sum: half of the time until the next one in a large cluster. 5,000 nodes are
// listed in 100 pages, whose decoding takes some seconds of CPU time.
func sumTimeout(nodes int) time.Duration { return max(leastSum*3/2, sumInterval(nodes)/2) }

// spread adds up to a quarter to a time at random, so that daemons that started together spread out.
func spread(d time.Duration) time.Duration { return wait.Jitter(d, 0.25) }
