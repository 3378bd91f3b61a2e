package leases

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// figures are what a simulated herd cost.
type figures struct {
	calls, conflicts float64       // for each start
	idle             time.Duration // of a slot, from its release until somebody has it, while pods wait
	// drought is the longest time in which a node that wanted a slot got none, as a
	// multiple of the time in which every node has its turn.
	drought float64
}

// simulateHerd has every node get so many pods at the same time.
func simulateHerd(t testing.TB, seed uint64, nodes, pods, slots int) (f figures) {
	w := newWorld(t, seed, nodes, slots)
	for _, n := range w.nodes {
		n.mine(w.upTo(200*time.Millisecond), func() { n.arrive(pods) })
	}
	total := nodes * pods
	w.run(24*time.Hour, func() bool { return w.admissions == total })
	assert.Equal(t, total, w.admissions)
	turns := w.now * time.Duration(nodes) / time.Duration(total)
	f.idle = w.idle / time.Duration(w.freed)
	for _, n := range w.nodes {
		for v, c := range n.p.stats.calls {
			if v != probeReads {
				f.calls += float64(c) / float64(total)
			}
		}
		f.conflicts += float64(n.p.stats.conflicts) / float64(total)
		slices.Sort(n.admitted)
		last := time.Duration(0)
		for _, at := range n.admitted {
			f.drought = max(f.drought, (at-last).Seconds()/turns.Seconds())
			last = at
		}
	}
	return f
}

func TestAHerdSharesTheSlots(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ nodes, pods, slots int }{{3, 100, 2}, {30, 40, 5}, {80, 12, 10}} {
		f := simulateHerd(t, 1, c.nodes, c.pods, c.slots)
		t.Logf("%+v: %+v", c, f)
		assert.Less(t, f.conflicts, 1.5, "%+v: rivals collide", c)
		assert.Less(t, f.calls, 6.0, "%+v", c)
		assert.Less(t, f.idle, 250*time.Millisecond, "%+v: slots idle", c)
		assert.Less(t, f.drought, 4.0, "%+v: a node starves", c)
	}
}

// A slot that a thousand others have just stopped to want is not left idle for the sake
// of them; nor is one that nobody else ever wanted.
func TestOneThatIsAloneDoesNotWait(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{1, 1000} {
		w := newWorld(t, 1, 1, 1)
		w.nodes[0].p.nodes = func() int { return nodes }
		w.nodes[0].mine(time.Second, func() { w.nodes[0].arrive(20) })
		w.run(time.Hour, func() bool { return w.admissions == 20 })
		assert.Less(t, w.idle/time.Duration(w.freed), time.Second, "%d nodes", nodes)
	}
}

// The figures of the package documentation.
func BenchmarkHerd(b *testing.B) {
	for _, c := range []struct{ nodes, pods, slots int }{{1, 100, 1}, {3, 100, 2}, {30, 40, 5}, {100, 30, 10}, {1000, 1, 20}, {1000, 1, 100}} {
		b.Run(fmt.Sprintf("nodes=%d/pods=%d/slots=%d", c.nodes, c.pods, c.slots), func(b *testing.B) {
			var sum figures
			for i := range b.N {
				f := simulateHerd(b, uint64(i), c.nodes, c.pods, c.slots)
				sum.calls += f.calls
				sum.conflicts += f.conflicts
				sum.idle += f.idle
				sum.drought = max(sum.drought, f.drought)
			}
			n := float64(b.N)
			b.ReportMetric(sum.calls/n, "calls/start")
			b.ReportMetric(sum.conflicts/n, "conflicts/start")
			b.ReportMetric(float64(sum.idle.Milliseconds())/n, "idle-ms")
			b.ReportMetric(sum.drought, "drought")
		})
	}
}
