package leases

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// figures are what a simulated herd cost.
type figures struct {
	took                          time.Duration
	callsPerStart, conflictsStart float64
	idle                          time.Duration
	worst, median                 time.Duration
}

// simulateHerd has every node get so many pods at the same time.
func simulateHerd(t testing.TB, seed uint64, nodes, pods, limit int) figures {
	w := newWorld(t, seed, nodes, limit)
	for _, n := range w.nodes {
		n.mine(w.upTo(200*time.Millisecond), func() { n.arrive(pods) })
	}
	total := nodes * pods
	w.run(24*time.Hour, func() bool { return w.admissions == total })
	assert.Equal(t, total, w.admissions)
	f := figures{took: w.now, idle: w.idle / time.Duration(total)}
	var waits []time.Duration
	for _, n := range w.nodes {
		for v, c := range n.p.stats.calls {
			if v != probeReads {
				f.callsPerStart += float64(c) / float64(total)
			}
		}
		f.conflictsStart += float64(n.p.stats.conflicts) / float64(total)
		waits = append(waits, n.waits...)
	}
	slices.Sort(waits)
	f.median, f.worst = waits[len(waits)/2], waits[len(waits)-1]
	return f
}

func TestSim(t *testing.T) {
	for _, c := range []struct{ nodes, pods, limit int }{{1, 50, 1}, {3, 20, 2}, {30, 10, 5}, {100, 5, 10}, {300, 2, 20}, {1000, 1, 20}} {
		at := time.Now()
		f := simulateHerd(t, 1, c.nodes, c.pods, c.limit)
		ideal := 15 * time.Second * time.Duration(c.nodes*c.pods) / time.Duration(c.limit)
		t.Logf("%+v: took %s (ideal %s); calls %.2f conflicts %.2f idle %s median %s worst %s; cpu %s", c, f.took, ideal, f.callsPerStart, f.conflictsStart, f.idle, f.median, f.worst, time.Since(at))
	}
}
