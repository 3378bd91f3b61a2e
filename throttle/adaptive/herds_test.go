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

// adaptiveRun starts the herd at the limit that the loop finds, in a limiter as it
// is.
func adaptiveRun(s nodesim.Scenario) nodesim.Result {
	l := throttle.New(time.Now(), settings(throttle.Settings{Adaptive: &adaptive.Settings{Cores: s.Cores}}))
	return nodesim.Run(s, nodesim.Pacing{Limiter: l, Observe: func(now time.Time, m nodesim.Measured) {
		l.Observe(now, m.Signals(now))
	}})
}

// The distribution of how much longer random herds take with the loop than at the
// fixed limit that would have been best for that herd.
func TestRandomHerdsTakeHardlyLongerThanAtTheirBestFixedLimit(t *testing.T) {
	t.Parallel()
	herds, bound := uint64(300), 1.2
	if testing.Short() {
		herds, bound = 60, 1.4 // three herds decide
	}
	var ratios []float64
	known := readSweep(t)
	synctest.Test(t, func(t *testing.T) {
		for seed := range herds {
			s := nodesim.Random(seed)
			best, limit := known.of(t, seed, s)
			r := adaptiveRun(s)
			ratios = append(ratios, r.Makespan/best)
			assert.Zero(t, r.Kills, "seed %d: %d cores, %d pods", seed, s.Cores, s.Pods())
			if r.Makespan > 1.3*best {
				t.Logf("seed %d: %.1f s, %.1f s with %d at a time: %d cores, %+v", seed, r.Makespan, best, limit, s.Cores, s.Herd)
			}
		}
	})
	known.write(t)
	slices.Sort(ratios)
	quantile := func(q float64) float64 { return ratios[int(math.Ceil(q*float64(len(ratios))))-1] }
	t.Logf("makespan by that of the best fixed limit, %d herds: 50 %% %.2f, 75 %% %.2f, 90 %% %.2f, 95 %% %.3f, 99 %% %.2f, all %.2f",
		herds, quantile(0.5), quantile(0.75), quantile(0.9), quantile(0.95), quantile(0.99), quantile(1))
	assert.LessOrEqual(t, quantile(0.95), bound)
}
