package report

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// perNode is what each node of the cluster adds to an interval, so that all of
	// them together do something 100 times a second at most.
	perNode = 10 * time.Millisecond
	// mostNodes is the largest size of a cluster that is believed, ten times what Kubernetes
	// supports: any daemon may write the Lease, and a wrong number there must not silence
	// all the others for days.
	mostNodes = 50_000

	leastWrite = 10 * time.Second // between two writes of one PacemakerNode
	leastSum   = 20 * time.Second // between two sums, and between two looks at the Lease
	// turnTimeout bounds one sum: a cluster of 5,000 nodes is listed in ten pages.
	turnTimeout = 30 * time.Second

	// heartbeat is the time after which a PacemakerNode is written though nothing
	// has changed, and goneAfter that after which it does not count any more: two
	// heartbeats and what chance adds to them.
	heartbeat = 10 * time.Minute
	goneAfter = 30 * time.Minute
)

// interval is the least time, stretched for a cluster of this many nodes.
func interval(least time.Duration, nodes int) time.Duration {
	return max(least, time.Duration(min(nodes, mostNodes))*perNode)
}

// sumInterval is the least time between two sums in a cluster of this many nodes.
func sumInterval(nodes int) time.Duration { return max(leastSum, 2*interval(0, nodes)) }

// spread stretches a time by up to a quarter at random, so that daemons that began
// together do not stay together.
func spread(d time.Duration) time.Duration { return wait.Jitter(d, 0.25) }
