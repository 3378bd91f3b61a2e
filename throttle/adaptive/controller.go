package adaptive

import (
	"fmt"
	"math"
	"time"
)

// Controller finds the limit. Make one with New. It is not safe for concurrent use.
type Controller struct {
	settings Settings
	limit    int
	idle     float64   // load of the node while nothing started
	seen     time.Time // time of the last sample
	began    time.Time // when the herd began: nothing started or waited until then
	past     exposure
	loss     loss
	spent    time.Duration // CPU time that starts were measured to use
	others   others
	disk     disk
	planned  int    // what Allow returned last
	held     string // why no more
	why      string
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
func (c *Controller) Why() string { return c.why + c.said() }

// first returns the limit with which a herd begins: it meets the goal if every start keeps one core busy.
func (c *Controller) first() int {
	return c.settings.clamp(int(float64(c.settings.Cores) * (c.settings.goal() - c.idle)))
}

// Observe takes what was measured and returns the limit from now on. A sample that is not later than the last, or covers
// no time, changes nothing. Where neither CPU use nor pressure is known, Window may be zero.
func (c *Controller) Observe(s Sample) (limit int) {
	load, goal := c.settings.load(s)
	if goal == 0 {
		return c.set(c.settings.startsAtGoal(), "CPU use and pressure are not known")
	}
	if s.Window <= 0 || !c.past.add(s) {
		return c.Limit()
	}
	if c.began.IsZero() {
		c.began = s.At
	}
	c.others.observe(s, c.spent, c.settings.Cores)
	c.disk.idle = s.IOPressureKnown && s.IOPressure <= ioPressure
	defer func() { c.seen = s.At }()
	s.Window = min(s.Window, remembered)
	watched := s.At.Sub(c.seen) <= s.Window
	c.loss.observe(s, &c.past, watched && c.settings.full(s, load, goal))
	if s.At.Sub(c.loss.asked) > remembered {
		c.disk.most, c.disk.stream = 0, 0
	}
	if s.Starting == 0 && !s.Waiting {
		// The load may come from setting up the pods of a herd, which will be over. So it counts as lasting only little by
		// little.
		c.idle = min(load, 1, c.idle+s.At.Sub(c.seen).Seconds()/lasting.Seconds())
		c.began = s.At
		return c.set(c.first(), fmt.Sprintf("nothing starts, lasting load %.2f", c.idle))
	}
	exposed := c.past.mean(s.At, s.Window)
	limit = int(math.Round(c.settings.want(s, exposed, load, goal)))
	if s.At.Sub(c.began) < setUp*s.Window { // the load may be the work of setting up the pods of a herd
		limit = max(limit, c.first())
	}
	limit = max(limit, c.settings.least())
	return c.set(limit, fmt.Sprintf("load %.2f of %.2f with %.1f starting", load, goal, exposed))
}

func (c *Controller) set(limit int, said string) int {
	c.limit = c.settings.clamp(c.loss.lower(limit))
	c.why = fmt.Sprintf("%d at a time: %s", c.limit, said)
	return c.limit
}
