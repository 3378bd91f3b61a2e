//go:build sim

package adaptive_test

import (
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/internal/nodesim"
)

// settings hold nobody but by the number of starts at a time.
func settings(s throttle.Settings) throttle.Settings {
	s.MaxWait, s.StartTimeout, s.NoProgressAfter = 24*time.Hour, 24*time.Hour, -1
	return s
}

// adaptiveRun starts the herd at the limit that the loop finds.
func adaptiveRun(s nodesim.Scenario, stopAfter float64) nodesim.Result {
	return pacedRun(s, throttle.Settings{Adaptive: &adaptive.Settings{Cores: s.Cores}}, stopAfter)
}

// pacedRun starts the herd, or what of it starts within so many seconds (0: all), by a limiter as it is.
func pacedRun(s nodesim.Scenario, by throttle.Settings, stopAfter float64) nodesim.Result {
	l := throttle.New(time.Now(), settings(by))
	return nodesim.Run(s, nodesim.Pacing{Limiter: l, StopAfter: stopAfter, Observe: func(now time.Time, m nodesim.Measured) {
		l.Observe(now, m.Signals(now))
	}})
}

// stream is a sequence of random herds and what is asked of the loop on them.
type stream struct {
	name  string // of its sweeps in testdata
	herd  func(seed uint64) nodesim.Scenario
	first uint64 // seed
	herds int
	// ratio is the bound of the makespan by that of the best fixed limit, for 95 % of
	// the herds; killed is how many herds may have a pod killed.
	ratio  float64
	killed int
}

// The goal is 1.2 and no kill; where a bound is above it, it is what was found. How the
// law and its constants were chosen: see Evidence in the package documentation.
var streams = []stream{
	{name: "heldout", herd: nodesim.Random, first: 900_000, herds: 300, ratio: 1.2, killed: 0},
	{name: "broad", herd: nodesim.Broad, first: 900_000, herds: 200, ratio: 1.44, killed: 19},
}

// The distribution of how much longer random herds take with the loop than at the
// fixed limit that would have been best for that herd.
func TestRandomHerdsTakeHardlyLongerThanAtTheirBestFixedLimit(t *testing.T) {
	t.Parallel()
	for _, herds := range streams {
		t.Run(herds.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, herds.judge)
		})
	}
}

func (h stream) judge(t *testing.T) {
	known, killed, ratios := readSweep(t, h.name), 0, []float64{}
	for i := range h.herds {
		seed := h.first + uint64(i)
		s := h.herd(seed)
		best, limit := known.of(t, i, s)
		r := adaptiveRun(s, 0)
		ratios = append(ratios, r.Makespan/best)
		if r.Kills > 0 {
			killed++
		}
		if r.Kills > 0 || r.Makespan > 1.3*best {
			t.Logf("seed %d: %.1f s, %d kills; %.1f s with %d at a time: %d cores, %d pods", seed, r.Makespan, r.Kills, best, limit, s.Cores, s.Pods())
		}
	}
	known.write(t)
	slices.Sort(ratios)
	quantile := func(q float64) float64 { return ratios[int(math.Ceil(q*float64(len(ratios))))-1] }
	t.Logf("%d herds, %d with a kill; makespan by that of the best fixed limit: 50 %% %.2f, 75 %% %.2f, 90 %% %.2f, 95 %% %.3f, 99 %% %.2f, all %.2f",
		len(ratios), killed, quantile(0.5), quantile(0.75), quantile(0.9), quantile(0.95), quantile(0.99), quantile(1))
	assert.LessOrEqual(t, quantile(0.95), h.ratio)
	assert.LessOrEqual(t, killed, h.killed)
}

// Once settled, a steady herd on the simulated node changes the limit by one in a
// window at most, until all that are left are let in.
func TestASteadyHerdMovesTheLimitByOneInAWindow(t *testing.T) {
	t.Parallel()
	for _, cores := range []int{2, 4, 8, 16} {
		synctest.Test(t, func(t *testing.T) {
			s := nodesim.Scenario{Cores: cores, Shuffled: true, Seed: uint64(cores)}
			for i := range 8 {
				s.Herd = append(s.Herd, nodesim.Kind{Name: "burner", Count: 5 * cores, CPUSeconds: 4 + float64(i)})
			}
			l := throttle.New(time.Now(), settings(throttle.Settings{Adaptive: &adaptive.Settings{Cores: cores}}))
			limit, changed, judged, changes := 0, 0.0, 0, 0
			nodesim.Run(s, nodesim.Pacing{Limiter: l, Observe: func(now time.Time, m nodesim.Measured) {
				l.Observe(now, m.Signals(now))
				found := l.Snapshot(now)
				settled := m.At > 60 && len(found.Waiting) > 0
				if settled {
					judged++
				}
				if found.Limit == limit {
					return
				}
				if settled {
					changes++
					assert.InDelta(t, limit, found.Limit, 1, "%d cores, %.2f s: %s", cores, m.At, found.Adaptive)
					assert.GreaterOrEqual(t, m.At-changed, m.Window, "%d cores, %.2f s: %s", cores, m.At, found.Adaptive)
				}
				limit, changed = found.Limit, m.At
			}})
			assert.Greater(t, judged, 200, "%d cores: over too soon", cores)
			t.Logf("%d cores: %d changes in %d samples", cores, changes, judged)
		})
	}
}
