package observe

import (
	"math/rand/v2"
	"time"

	"golang.org/x/time/rate"
)

// Limits of one class of events, for a cluster in which every node always has events to write. There are three classes:
// two of events on pods, and those on nodes. An API server can write some hundreds of objects a second beside its other
// work.
//
//	nodes   each node at once   each node, one every   all at once   all, a second
//	    1                  20                    2 s            20             0.5
//	   40                  20                    2 s           800              20
//	  500                   8                   20 s         4,000              25
//	5,000                   1                  200 s         5,000              25
//
// The first events are spread over time, too: when a herd begins on all nodes at the same time, its first events
// are written within nodes x 4 ms, 20 s for 5,000 nodes, which is 250 events a second.
const (
	eventEvery    = 2 * time.Second       // shortest time between two events of a node in the long run
	eventBurst    = 20                    // most events of a node at once
	everyPerNode  = 40 * time.Millisecond // each node of the cluster adds this to the time between two events of a node
	burstOfAll    = 4000                  // most events of all nodes at once; each node may write one in any case
	latePerNode   = 4 * time.Millisecond  // each node of the cluster adds this to the time within which nodes begin
	latestOfFirst = time.Minute           // within which all nodes have begun
)

// eventBudget limits the events of one class. Make one with newEventBudget. It is safe for concurrent use.
type eventBudget struct {
	limiter *rate.Limiter
	share   float64 // random, from 0 to 1: the part of the longest delay after which this node begins
}

func newEventBudget() *eventBudget {
	return &eventBudget{limiter: rate.NewLimiter(rate.Every(eventEvery), eventBurst), share: rand.Float64()}
}

// allow reports whether an event may be written now, and counts it if so.
func (b *eventBudget) allow(now time.Time) bool { return b.limiter.AllowN(now, 1) }

// inClusterOf sets the limits of a node in a cluster of this many nodes, at least one. It returns how much later than the
// first node this node begins.
func (b *eventBudget) inClusterOf(nodes int) (delay time.Duration) {
	b.limiter.SetLimit(rate.Every(max(eventEvery, time.Duration(nodes)*everyPerNode)))
	b.limiter.SetBurst(min(eventBurst, max(1, burstOfAll/nodes)))
	if nodes == 1 {
		return 0
	}
	return time.Duration(b.share * float64(min(latestOfFirst, time.Duration(nodes)*latePerNode)))
}
