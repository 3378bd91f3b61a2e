package costs

import (
	"math"
	"time"
)

// Start is what one start took, from when its process might begin until it was ready.
type Start struct {
	CPU    time.Duration // CPU time
	Wall   time.Duration // elapsed time
	Waited time.Duration // time in which it waited for a CPU
	Idle   time.Duration // time until it first kept a CPU busy, without that in which it waited for one
	// Peak is how many CPUs it kept busy, or would have without waiting for a CPU: the highest mean over
	// 2 s.
	Peak float64
	Disk int64 // bytes read from disks and written to them
	// Killed reports whether a probe killed it before it was ready. All figures are minimums then.
	Killed bool
}

// Figure is an estimate of one figure. In the zero value, nothing is known.
type Figure struct {
	Mean      float64 `json:"mean"`
	Deviation float64 `json:"deviation"` // the mean distance of observations from the mean
}

// observe takes the n-th observation into account.
func (f *Figure) observe(n int, m float64) {
	if n <= 1 {
		*f = Figure{Mean: m, Deviation: m / 2}
		return
	}
	off := m - f.Mean
	f.Mean += max(1./8, 1/float64(n)) * off
	f.Deviation += max(1./4, 1/float64(n)) * (math.Abs(off) - f.Deviation)
}

// surprised reports whether an observation is so far from the mean that it must be of another program.
func (f *Figure) surprised(m float64) bool {
	return math.Abs(m-f.Mean) > max(4*f.Deviation, f.Mean/2, 0.5)
}

// Cost is what starts of one key took, as estimates: times in seconds, Peak in cores, Disk in bytes.
type Cost struct {
	// Count is how many starts this was learned from, without killed ones. If it is 0, all were
	// killed, and the figures are minimums.
	Count int `json:"count"`
	// Seen is when the last of these ended, or the last killed one if Count is 0.
	Seen time.Time `json:"seen"`

	CPU  Figure `json:"cpuSeconds"`
	Idle Figure `json:"idleSeconds"` // until it first keeps a CPU busy
	Peak Figure `json:"peakCores"`   // see Start
	Disk Figure `json:"diskBytes"`   // to and from disks
}

// Alone returns how long a start takes alone on its node, seconds: it idles, and then burns its CPU time at its peak.
func (c Cost) Alone() float64 { return c.Idle.Mean + c.CPU.Mean/max(1e-3, c.Peak.Mean) }

func (c *Cost) observe(s Start, now time.Time) {
	if !s.Killed && c.Count > 0 && (c.CPU.surprised(s.CPU.Seconds()) || c.Idle.surprised(s.Idle.Seconds())) {
		*c = Cost{}
	}
	if !s.Killed {
		c.Count++
	}
	if !s.Killed || c.Count == 0 {
		c.Seen = now
	}
	for figure, value := range map[*Figure]float64{
		&c.CPU: s.CPU.Seconds(), &c.Idle: s.Idle.Seconds(), &c.Peak: s.Peak, &c.Disk: float64(s.Disk),
	} {
		if value = max(0, value); !s.Killed || value > figure.Mean {
			figure.observe(c.Count, value)
		}
	}
}
