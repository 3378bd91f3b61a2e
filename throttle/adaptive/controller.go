package adaptive

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// Controller finds the limit. Make one with New. It is not safe for concurrent use.
type Controller struct {
	settings Settings
	limit    int
	before   float64   // load of the node while nothing started, 0 to 1
	last     time.Time // time of the last sample
	began    time.Time // when the herd began: nothing started or waited until then
	past     exposure
	loss     loss
	others   others
	disk     disk
	planned  int    // the limit that Allow returned last
	held     string // why it is no more
	why      string // what Observe found last
}

// New returns a Controller. It takes the node to be idle until the first sample.
func New(s Settings) *Controller {
	c := &Controller{settings: s.complete(), why: "nothing measured yet"}
	c.limit = c.first()
	return c
}

// Configure changes the settings and keeps what was learned.
func (c *Controller) Configure(s Settings) {
	c.settings = s.complete()
	c.limit = c.settings.clamp(c.limit)
}

// Limit returns the number of starts at a time that the last Observe found.
func (c *Controller) Limit() int { return c.limit }

// Why says in one line what the last Observe and Allow found and why, for people.
func (c *Controller) Why() string {
	if c.planned == 0 || c.planned == c.limit {
		return c.why
	}
	return fmt.Sprintf("%s; %d by the forecast of the starts: %s", c.why, c.planned, cmp.Or(c.held, "all may start"))
}

// first returns the limit with which a herd begins: it meets the goal if every start keeps one core busy.
func (c *Controller) first() int {
	return c.settings.clamp(int(float64(c.settings.Cores) * (c.settings.goal() - c.before)))
}

// Observe takes what was measured, and finds the limit from now on. A sample that is not later than the last, or covers no
// time, changes nothing. Where neither CPU use nor pressure is known, Window may be zero.
func (c *Controller) Observe(s Sample) {
	load, goal := c.settings.load(s)
	if goal == 0 {
		c.set(c.settings.startsAtGoal(), "CPU use and pressure are not known")
		return
	}
	if s.Window <= 0 || !c.past.add(s) {
		return
	}
	c.began = cmp.Or(c.began, s.At)
	s.Window = min(s.Window, remembered)
	since := s.At.Sub(c.last)
	c.last = s.At
	c.others.observe(s, since, c.settings.Cores)
	if !s.IOPressureKnown || s.waitsForDisk() {
		c.disk.pressed = s.At
	}
	c.disk.waited = s.At.Sub(c.disk.pressed) < lasting
	full := load >= nearly*goal || s.waitsForDisk()
	c.loss.observe(s, &c.past, full && since <= s.Window)
	if s.At.Sub(c.loss.asked) > remembered {
		c.disk = disk{}
	}
	if s.Starting == 0 && !s.Waiting {
		// The load may come from setting up the pods of a herd: it counts as lasting only little by little.
		c.before = min(load, 1, c.before+since.Seconds()/lasting.Seconds())
		c.began = s.At
		c.set(c.first(), fmt.Sprintf("nothing starts, lasting load %.2f", c.before))
		return
	}
	exposed := c.past.mean(s.At, s.Window)
	limit := int(math.Round(c.settings.want(s, exposed, load, goal)))
	if s.At.Sub(c.began) < setUp*s.Window { // the load may be the work of setting up the pods of a herd
		limit = max(limit, c.first())
	}
	// As many starts as the queue of the goal has are always allowed if each keeps a CPU busy: other work that shares the
	// CPUs evenly may keep the load above the goal, whatever starts.
	limit = max(limit, int((c.settings.goal()-1)*float64(c.settings.Cores)))
	c.set(limit, fmt.Sprintf("load %.2f of %.2f with %.1f starting", load, goal, exposed))
}

func (c *Controller) set(limit int, said string) {
	if c.loss.most > 0 {
		limit = min(limit, int(c.loss.most))
	}
	c.limit = c.settings.clamp(limit)
	c.why = fmt.Sprintf("%d at a time: %s", c.limit, said)
}
