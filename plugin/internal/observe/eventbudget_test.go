package observe

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// These are the figures in the comment of the budget. For any number of nodes, all of them together write no more
// than an API server can bear, at once and in the long run.
func TestEventsOfAllNodesHaveABudget(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		nodes, atOnce int
		every         time.Duration
	}{{1, 20, 2 * time.Second}, {40, 20, 2 * time.Second}, {500, 8, 20 * time.Second}, {5000, 1, 200 * time.Second}} {
		b := newEventBudget()
		delay := b.inClusterOf(c.nodes)
		now := time.Now()
		count := func(over, step time.Duration) (n int) {
			for end := now.Add(over); now.Before(end); now = now.Add(step) {
				if b.allow(now) {
					n++
				}
			}
			return n
		}
		assert.Equal(t, c.atOnce, count(time.Second, time.Millisecond), "at once, %d nodes", c.nodes)
		assert.InDelta(t, 10, count(10*c.every, c.every/10), 1, "in the long run, %d nodes", c.nodes)
		assert.LessOrEqual(t, float64(c.nodes)/c.every.Seconds(), 25.0, "a second, of %d nodes", c.nodes)
		assert.LessOrEqual(t, c.nodes*c.atOnce, 5000, "at once, of %d nodes", c.nodes)
		assert.LessOrEqual(t, delay, time.Duration(c.nodes)*latePerNode)
	}
}
