package adaptive

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAForecastSharesTheNodeEvenly(t *testing.T) {
	t.Parallel()
	burner := demand{cpu: 4, cores: 1}
	for name, c := range map[string]struct {
		starts       []demand
		cores, disk  float64
		ends, crowds []float64
	}{
		"nobody":                           {},
		"one alone":                        {starts: []demand{burner}, cores: 2, ends: []float64{4}, crowds: []float64{1}},
		"one that needs nothing":           {starts: []demand{{cores: 1}}, cores: 2, ends: []float64{0}, crowds: []float64{0}},
		"three on two cores":               {starts: []demand{burner, burner, burner}, cores: 2, ends: []float64{6, 6, 6}, crowds: []float64{3, 3, 3}},
		"one that its limit holds":         {starts: []demand{burner, {cpu: 1, cores: 0.25}, burner}, cores: 1.25, ends: []float64{7.2, 4, 7.2}, crowds: []float64{2.25, 2.25, 2.25}},
		"one with four threads":            {starts: []demand{{cpu: 4, cores: 4}}, cores: 8, ends: []float64{1}, crowds: []float64{4}},
		"one that idles before":            {starts: []demand{burner, {idle: 2, cpu: 1, cores: 1}}, cores: 1, ends: []float64{5, 4}, crowds: []float64{1, 2}},
		"one that comes when others ended": {starts: []demand{burner, {idle: 9, cpu: 1, cores: 1}}, cores: 1, ends: []float64{4, 10}, crowds: []float64{1, 1}},
		"two on a disk for one": {
			starts: []demand{{disk: 100, reads: 50, cpu: 1, cores: 1}, {disk: 100, reads: 50, cpu: 1, cores: 1}}, cores: 2, disk: 50,
			ends: []float64{5, 5}, crowds: []float64{2, 2},
		},
		"one that reads little and idles": {starts: []demand{{idle: 3, disk: 100, reads: 100, cpu: 1, cores: 1}}, cores: 1, disk: 100, ends: []float64{4}, crowds: []float64{1}},
	} {
		foresee(c.starts, c.cores, c.disk)
		for i, s := range c.starts {
			assert.InDelta(t, c.ends[i], s.end, 1e-6, "%s: end of %d", name, i)
			assert.InDelta(t, c.crowds[i], s.crowd, 1e-6, "%s: crowd of %d", name, i)
		}
	}
}

// Whatever starts come, the work of all is done as soon as by a node that is never idle while it has any, and nobody is
// done sooner than alone.
func TestAForecastLosesNoWork(t *testing.T) {
	t.Parallel()
	for n := 1; n < 60; n++ {
		starts, work, latest := make([]demand, n), 0.0, 0.0
		for i := range starts {
			starts[i] = demand{idle: float64(i * 7 % 11), cpu: 0.1 + float64(i*5%13), cores: 0.25 + float64(i%4)/2}
			work += starts[i].cpu
			latest = max(latest, starts[i].idle)
		}
		foresee(starts, 3, 0)
		last := 0.0
		for _, s := range starts {
			last = max(last, s.end)
			assert.GreaterOrEqual(t, s.end, s.idle+s.cpu/min(3, s.cores)-1e-6)
			assert.False(t, math.IsInf(s.end, 0))
		}
		assert.GreaterOrEqual(t, last, work/3-1e-6)
		assert.LessOrEqual(t, last, latest+work/0.25)
	}
}
