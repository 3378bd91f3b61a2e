package observe

import (
	"math/rand/v2"
	"time"

	"golang.org/x/time/rate"
)

// What all nodes of a cluster together write of one class of events on pods, where every
// one of them has something to tell all the time. There are two classes, and an API
// server writes some hundreds of objects a second beside its other work:
//
//	nodes   each node at once   each node, one every   all at once   all, a second
//	    1                  20                    2 s            20             0.5
//	   40                  20                    2 s           800              20
//	  500                   8                   20 s         4,000              25
//	5,000                   1                  200 s         5,000              25
//
// All at once is spread, too: the events of a herd that begins on all nodes in one moment are written
// over nodes x 4 ms, 20 s for 5,000 nodes, which is 250 events a second.
const (
	eventEvery    = 2 * time.Second       // of one node in the long run, at most
	eventBurst    = 20                    // of one node at once, at most
	everyPerNode  = 40 * time.Millisecond // what each node of the cluster adds to the time between two
	burstOfAll    = 4000                  // of all nodes at once, but for one each
	latePerNode   = 4 * time.Millisecond  // what each adds to the time within which the first is written
	latestOfFirst = time.Minute
)

// eventBudget bounds the events of one class. Make one with newEventBudget. allow is safe
// for concurrent use.
type eventBudget struct {
	limiter *rate.Limiter
	nodes   int
	place   float64       // of this node among all, from 0 to 1
	late    time.Duration // how much later than others this node begins
}

func newEventBudget() *eventBudget {
	return &eventBudget{limiter: rate.NewLimiter(rate.Every(eventEvery), eventBurst), place: rand.Float64()}
}

// allow reports whether an event may be written now, and counts it then.
func (b *eventBudget) allow(now time.Time) bool { return b.limiter.AllowN(now, 1) }

// inClusterOf shares what all nodes may write among this many; 0 or less, which is not known,
// counts as one.
func (b *eventBudget) inClusterOf(nodes int) {
	if nodes = max(nodes, 1); b.nodes == nodes {
		return
	}
	b.nodes = nodes
	b.limiter.SetLimit(rate.Every(max(eventEvery, time.Duration(nodes)*everyPerNode)))
	b.limiter.SetBurst(min(eventBurst, max(1, burstOfAll/nodes)))
	b.late = 0
	if nodes > 1 {
		b.late = time.Duration(b.place * float64(min(latestOfFirst, time.Duration(nodes)*latePerNode)))
	}
}
