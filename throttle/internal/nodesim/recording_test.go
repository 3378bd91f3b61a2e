package nodesim_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/internal/nodesim"
)

// The simulation reproduces the recordings within 15 %: the makespan, and roughly the sensors' values.
func TestReproducesRecordedHerds(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"standard-1", "standard-2", "standard-3", "standard-4", "standard-6", "standard-unpaced", "mixed-4", "mixed-unpaced",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recorded, err := nodesim.Recorded(name)
			require.NoError(t, err)
			const seeds = 9
			took, some, busy := 0.0, 0.0, 0.0
			synctest.Test(t, func(*testing.T) {
				for seed := range uint64(seeds) {
					r := nodesim.Run(recorded.Scenario(seed), fixed(recorded.Limit))
					took += r.Makespan / seeds
					s, b := pressure(r)
					some, busy = some+s/seeds, busy+b/seeds
				}
			})
			realSome, realBusy := recorded.Pressure()
			t.Logf("makespan %.1f s, recorded %.1f s; pressure %.0f %%, recorded %.0f %%; busy %.0f %%, recorded %.0f %%",
				took, recorded.Makespan(), some, realSome, busy, realBusy)
			assert.Less(t, math.Abs(took/recorded.Makespan()-1), 0.15)
			assert.InDelta(t, realSome, some, 15)
			assert.InDelta(t, realBusy, busy, 15)
		})
	}
}

// pressure gives the mean CPU pressure and the CPU use since the first start.
func pressure(r nodesim.Result) (some, busy float64) {
	first := math.Inf(1)
	for _, p := range r.Pods {
		first = min(first, p.Started)
	}
	n := 0.0
	for _, m := range r.Measured {
		if m.At-m.Window >= first {
			some, busy, n = some+m.CPUPressure, busy+m.CPU, n+1
		}
	}
	return some / n, busy / n
}

// fixed paces with this many starts at a time, and measures. 0: with any number.
func fixed(limit int) nodesim.Pacing {
	by := nodesim.Pacing{Observe: func(time.Time, nodesim.Measured) {}}
	if limit > 0 {
		by.Limiter = throttle.New(time.Now(), throttle.Settings{MaxConcurrent: limit, MaxWait: 24 * time.Hour, NoProgressAfter: -1})
	}
	return by
}
