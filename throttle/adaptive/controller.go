package adaptive

import (
	"fmt"
	"math"
	"time"
)

// Controller is the loop. It is not safe for concurrent use.
type Controller struct {
	settings Settings
	limit    int
	settled  bool
	changed  time.Time // when the limit changed last
	past     exposure
	why      string
}

// New returns a Controller that begins with one start per core.
func New(s Settings) *Controller {
	c := &Controller{settings: s.complete(), why: "nothing measured yet"}
	c.limit = c.initial()
	return c
}

// Configure changes the settings and keeps what was learned.
func (c *Controller) Configure(s Settings) {
	c.settings = s.complete()
	c.limit = c.settings.bound(c.limit)
}

// Limit is the number of starts at a time that the last Observe found.
func (c *Controller) Limit() int { return c.limit }

// Why says in one line what the last Observe did and why, for people.
func (c *Controller) Why() string { return c.why }

func (c *Controller) initial() int { return c.settings.bound(c.settings.Cores) }

// Observe takes what was measured and returns the limit from now on. Samples are
// given in the order of their times.
func (c *Controller) Observe(s Sample) (limit int) {
	c.past.add(s.At, s.Starting)
	if s.Starting == 0 && s.Waiting == 0 {
		c.settled = false
		return c.set(s, c.initial(), "nothing starts")
	}
	if !s.CPUKnown && !s.CPUPressureKnown {
		return c.set(s, c.settings.bound(2*c.settings.Cores), "CPU use and pressure are not known: two starts per core")
	}
	exposed := c.past.mean(s.At, s.Window)
	load, goal := c.load(s), 1+c.settings.TargetPressure/100
	want := exposed * goal / max(load, 0.01)
	said := fmt.Sprintf("load %.2f of %.2f with %.1f starting", load, goal, exposed)
	switch bind := s.Waiting > 0 && s.Starting >= c.limit; {
	case want > float64(c.limit)+0.5 && !bind:
		return c.set(s, c.limit, said+", nobody is held")
	case want > float64(c.limit)+0.5 && !c.settled:
		return c.set(s, min(int(math.Round(want)), int(4*exposed)+1), said)
	case exposed < float64(s.Starting)/2:
		return c.set(s, c.limit, said+", not measured yet")
	default:
		c.settled = c.settled || want < float64(c.limit)+0.5
		return c.step(s, want, said)
	}
}

// load is how many cores' worth of work there is for each core: the share of the
// CPUs that are busy and, where that is most of them, of those with a queue.
func (c *Controller) load(s Sample) float64 {
	cpu, pressure := s.CPU/100, s.CPUPressure/100
	if !s.CPUKnown {
		cpu = 0.9
	}
	if !s.CPUPressureKnown {
		pressure = 0
	}
	const idle, busy = 0.70, 0.95
	return cpu + pressure*max(0, min(1, (cpu-idle)/(busy-idle)))
}

// step moves the limit by at most one in each window.
func (c *Controller) step(s Sample, want float64, said string) int {
	const slack = 0.6
	limit := c.limit
	if s.At.Sub(c.changed) >= s.Window {
		switch {
		case want > float64(limit)+slack:
			limit++
		case want < float64(limit)-slack:
			limit--
		}
	}
	return c.set(s, limit, said)
}

func (c *Controller) set(s Sample, limit int, said string) int {
	if limit = c.settings.bound(limit); limit != c.limit {
		c.limit, c.changed = limit, s.At
	}
	c.why = fmt.Sprintf("limit %d: %s", c.limit, said)
	return c.limit
}
