package leases

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// trouble has pods come, daemons crash, ways to the API server be cut and the API
// server be away for some minutes, at times drawn from the seed; then everything works.
func (w *world) trouble(minutes int) {
	for range minutes {
		at := w.upTo(time.Duration(minutes) * time.Minute)
		n := w.nodes[w.rand.IntN(len(w.nodes))]
		w.after(at, func() {
			switch w.rand.IntN(4) {
			case 0:
				if !n.dead {
					n.crash(w.upTo(time.Minute))
				}
			case 1:
				n.cut = true
				w.after(w.upTo(90*time.Second), func() { n.cut = false })
			case 2:
				w.down = true
				w.after(w.upTo(time.Minute), func() { w.down = false })
			case 3:
				n.freeze(w.upTo(time.Minute))
			}
		})
	}
	for range 8 * len(w.nodes) {
		n := w.nodes[w.rand.IntN(len(w.nodes))]
		w.after(w.upTo(time.Duration(minutes)*time.Minute), func() { n.arrive(1) })
	}
	w.after(time.Duration(minutes)*time.Minute, func() {
		w.down = false
		for _, n := range w.nodes {
			n.cut = false
		}
	})
}

// After the store was restored from a backup, everybody who waits gets a slot, nodes that
// rely on one are soon no more than there are, and nobody tries in vain for ever.
func TestARestoredStoreIsLivedWith(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		w := newWorld(t, seed, 2+int(seed%7), 1+int(seed%4))
		w.clocks(0.85, 1.2)
		for _, n := range w.nodes {
			n.arrive(40)
		}
		w.run(w.upTo(2*time.Minute), func() bool { return false })
		w.restoreLater(w.upTo(3 * time.Minute))
		w.run(3*time.Minute, func() bool { return false })
		w.run(time.Minute, func() bool { return false }) // those who relied on a slot do no more
		conflicts := uint64(0)
		for _, n := range w.nodes {
			conflicts -= n.p.stats.conflicts
		}
		w.neverMore()
		before := w.admissions
		w.run(2*time.Hour, func() bool { return w.waiting() == 0 })
		require.Zero(t, w.waiting(), "seed %d: somebody starves", seed)
		for _, n := range w.nodes {
			conflicts += n.p.stats.conflicts
		}
		require.LessOrEqual(t, conflicts, uint64(3*(w.admissions-before)+10), "seed %d", seed)
	}
}

// clocks gives the nodes clocks that are hours apart, and run at such different rates.
func (w *world) clocks(least, most float64) {
	for i, n := range w.nodes {
		n.offset = w.upTo(20*time.Hour) - 10*time.Hour
		n.rate = least + (most-least)*float64(i)/float64(len(w.nodes)-1)
		n.boot()
	}
}

// Whatever happens, nodes that rely on a slot are never more than there are slots; and
// once the trouble is over everybody who waits gets one.
func TestNeverMoreThanTheLimitHoldSlots(t *testing.T) {
	t.Parallel()
	seeds := uint64(60)
	if testing.Short() {
		seeds = 10
	}
	var admissions, expired, conflicts, most uint64
	for seed := range seeds {
		w := newWorld(t, seed, 2+int(seed%7), 1+int(seed%4))
		w.clocks(0.85, 1.2)
		w.latency = 50*time.Millisecond + w.upTo(2*time.Second)
		w.watchDelay = 50*time.Millisecond + w.upTo(5*time.Second)
		w.neverMore()
		w.trouble(15)
		w.run(15*time.Minute, func() bool { return false })
		arrived := 8 * len(w.nodes)
		w.run(time.Hour, func() bool { return w.waiting() == 0 })
		require.Zero(t, w.waiting(), "seed %d: somebody starves", seed)
		require.Equal(t, arrived, w.admissions, "seed %d", seed)
		// All that is held is given back, or is left to expire by a crash.
		w.run(time.Hour, func() bool { return false })
		require.Zero(t, w.held(), "seed %d", seed)
		require.Positive(t, w.mostHeld)
		if w.mostHeld == w.limit {
			most++
		}
		admissions += uint64(w.admissions)
		for _, n := range w.nodes {
			expired += n.p.stats.expired
			conflicts += n.p.stats.conflicts
		}
	}
	t.Logf("%d seeds: %d starts, %d claims ran out, %d conflicts; all slots held at some time in %d", seeds, admissions, expired, conflicts, most)
	assert.Greater(t, most, seeds*3/4, "the limit is reached, so that more could be seen")
	assert.Positive(t, expired, "there is trouble")
	assert.Positive(t, conflicts, "there is rivalry")
}

// Where a clock runs three times as fast as another, what the package promises does not
// hold: the observer of the test above sees that.
func TestTheObserverSeesMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	over := 0
	for seed := range uint64(20) {
		w := newWorld(t, seed, 4, 1)
		w.clocks(0.5, 3)
		w.check = func() {
			if w.held() > w.limit {
				over++
			}
		}
		w.trouble(15)
		w.run(20*time.Minute, func() bool { return false })
	}
	assert.Positive(t, over)
}
