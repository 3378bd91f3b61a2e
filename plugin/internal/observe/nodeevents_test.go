package observe

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// countedEvents counts the events on nodes, and those on pods.
type countedEvents struct {
	Recorder
	n, pods atomic.Int64
}

// Node implements EventWriter.
func (c *countedEvents) Node(string, string, string) { c.n.Add(1) }

// Pod implements EventWriter.
func (c *countedEvents) Pod(string, string, string, string, string) { c.pods.Add(1) }

// What goes wrong on all nodes at once makes no more events than the API server can bear.
func TestEventsOnNodesAreFewAndSpread(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const nodes, daemons = 5000, 200
		var written countedEvents
		for range daemons {
			o := New(Options{Log: discard(), Events: &written, Nodes: func() int { return nodes }})
			for range 10 {
				o.Report(ClusterPolicies{Open: []string{"team"}, Why: errors.New("it is away")})
			}
		}
		time.Sleep(latePerNode * nodes / 2)
		synctest.Wait()
		assert.InDelta(t, daemons/2, written.n.Load(), daemons/4, "half of them in half of the time")
		time.Sleep(latePerNode * nodes / 2)
		synctest.Wait()
		assert.EqualValues(t, daemons, written.n.Load(), "each node writes one at once")

		var alone countedEvents
		o := New(Options{Log: discard(), Events: &alone, Nodes: func() int { return 1 }})
		o.Report(ClusterPolicies{Open: []string{"team"}, Why: errors.New("it is away")})
		assert.EqualValues(t, 1, alone.n.Load(), "a single node does not wait")
	})
}
