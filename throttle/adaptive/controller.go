package adaptive

import (
	"fmt"
	"math"
	"time"
)

// Controller is the loop. Make one with New. It is not safe for concurrent use.
type Controller struct {
	settings Settings
	limit    int
	idle     float64   // the load of the node while nothing started
	open     bool      // the node has room for many, or nobody knows yet
	seen     time.Time // the time of the last sample
	began    time.Time // when nothing was starting last
	bearable time.Time // when the load was last below overfull
	changed  time.Time // when the limit changed last
	past     exposure
	ceiling  ceiling
	demand   demand
	loss     loss
	most     int           // while the node is overfull, nobody beyond so many takes the place of one that ends; 0: it is not
	spent    time.Duration // CPU time that starts used, as far as they were measured
	others   others
	crowded  bool // the node is overfull, and not just because pods are set up
	disk     disk
	planned  int    // what Allow gave last
	held     string // and why no more
	why      string
}

// New returns a Controller that takes the node to be idle until it is told
// otherwise.
func New(s Settings) *Controller {
	c := &Controller{settings: s.complete(), open: true, why: "nothing measured yet"}
	c.limit = c.first()
	return c
}

// Configure changes the settings and keeps what was learned.
func (c *Controller) Configure(s Settings) {
	c.settings = s.complete()
	c.limit, c.most = c.settings.bound(c.limit), 0
}

// Limit is the number of starts at a time that the last Observe found.
func (c *Controller) Limit() int {
	if c.most > 0 {
		return min(c.limit, c.most)
	}
	return c.limit
}

// Why says in one line what the last Observe and Allow did and why, for people.
func (c *Controller) Why() string { return c.why + c.said() }

// Reach is the number of starts at a time that the limit may come to soon: more
// than Limit while the node has room.
func (c *Controller) Reach() int {
	if !c.open {
		return c.limit
	}
	return max(c.limit, c.settings.bound(c.loss.bound(reachPerCore*c.settings.Cores)))
}

// burning is the number of starts that meets the goal if every start keeps one core
// busy.
func (c *Controller) burning() float64 {
	return float64(c.settings.Cores) * (c.settings.goal() - c.idle)
}

// first is the limit that a herd begins with.
func (c *Controller) first() int { return c.settings.bound(int(c.burning())) }

// Observe takes what was measured and returns the limit from now on. Samples come
// in the order of their times; one that is not later than the last, or covers no
// time, changes nothing. Where neither CPU use nor pressure is known, there need be
// no Window.
func (c *Controller) Observe(s Sample) (limit int) {
	load, goal := c.settings.load(s)
	if goal == 0 {
		c.open, c.most = false, 0
		return c.set(s.At, blindPerCore*c.settings.Cores, "CPU use and pressure are not known")
	}
	if s.Window <= 0 || !c.past.add(s) {
		return c.Limit()
	}
	if c.began.IsZero() {
		c.began = s.At
	}
	c.crowded = load > max(overfull, goal) && !c.settingUp(s)
	c.others.observe(s, c.spent, c.settings.Cores)
	defer func() { c.seen = s.At }()
	s.Window = min(s.Window, remembered)
	c.learn(s, c.settings.full(s, load, goal))
	if s.Starting == 0 && s.Waiting == 0 {
		// The load may be that of setting up the pods of a herd, which will be over: it
		// is taken for lasting only little by little.
		c.idle = min(load, 1, c.idle+s.At.Sub(c.seen).Seconds()/lasting.Seconds())
		c.open, c.began, c.bearable, c.ceiling = c.idle < openBelow, s.At, s.At, ceiling{}
		c.demand, c.most = newDemand(s), 0
		return c.set(s.At, c.first(), fmt.Sprintf("nothing starts, lasting load %.2f", c.idle))
	}
	exposed := c.past.mean(s.At, s.Window)
	c.open = load < openBelow || (c.idle < openBelow && c.settingUp(s))
	if rest, ok := c.rest(s); ok && load <= max(overfull, goal) {
		c.most = 0
		return c.set(s.At, max(c.limit, s.Starting+s.Queued), fmt.Sprintf("all that are left keep the node busy for %.1f s", rest.Seconds()))
	}
	want := c.wanted(s, exposed, load, goal)
	c.follow(s, want, exposed, load, goal)
	return c.hold(s, load, goal)
}

// hold keeps the starts that end from being replaced while the node is overfull, down to
// the number that is right if each keeps a core busy.
func (c *Controller) hold(s Sample, load, goal float64) int {
	most := c.settings.bound(int(math.Round(c.burning())))
	far := c.most > 0 || float64(s.Starting) > beyond*c.burning()
	c.most = 0
	if load > max(overfull, goal) && s.Starting > most && far {
		c.limit, c.most = min(c.limit, s.Starting), most
		c.why = fmt.Sprintf("%d at a time: load %.2f of %.2f, nobody takes the place of those that end", c.Limit(), load, goal)
	}
	return c.Limit()
}

// settingUp tells whether what is measured may be the work of setting up the pods of a
// herd.
func (c *Controller) settingUp(s Sample) bool { return s.At.Sub(c.began) < setUp*s.Window }

// wanted is the number of starts that would meet the goal, as far as what was
// measured before and the beginning of a herd allow.
func (c *Controller) wanted(s Sample, exposed, load, goal float64) float64 {
	want := c.settings.want(s, exposed, load, goal)
	if exposed >= measured*max(1, float64(s.Starting)) && !c.settingUp(s) && c.settings.full(s, load, goal) {
		c.ceiling = ceiling{want, s.At}
	}
	bound := min(c.ceiling.bound(s.At, s.Window, want), c.settings.unseen(exposed, load, c.idle))
	want = max(bound, min(want, float64(c.limit)))
	if load <= max(overfull, goal) {
		c.bearable = s.At
	} else if s.At.Sub(c.bearable) > s.Window {
		want = min(want, relief*exposed, exposed-1, math.Sqrt(exposed*c.burning()))
	}
	if c.settingUp(s) {
		want = max(want, float64(min(c.limit, c.first())))
	}
	return want
}

// follow moves the limit towards the number of starts that is wanted.
func (c *Controller) follow(s Sample, want, exposed, load, goal float64) int {
	limit := float64(c.limit)
	many, few := want > max(limit, exposed)*(1+nearby)+1, want < limit*(1-nearby)-1
	settled := s.At.Sub(c.changed) >= s.Window
	said := fmt.Sprintf("load %.2f of %.2f with %.1f starting", load, goal, exposed)
	switch {
	case want > limit && (s.Waiting == 0 || s.Starting < c.limit):
		return c.set(s.At, c.limit, said+", no pod is held")
	case many:
		return c.set(s.At, int(math.Round(want)), said+", room for many")
	case !settled:
		return c.set(s.At, c.limit, said+", changed lately")
	case want > limit+slack:
		return c.set(s.At, c.limit+1, said+", room for one")
	case want > limit-slack:
		return c.set(s.At, c.limit, said)
	case exposed < measured*max(1, float64(s.Starting)):
		return c.set(s.At, c.limit, said+", starts not measured yet")
	case few:
		return c.set(s.At, int(math.Round(want)), said+", far too many")
	default:
		return c.set(s.At, c.limit-1, said+", one too many")
	}
}

func (c *Controller) set(at time.Time, limit int, said string) int {
	if limit = c.settings.bound(c.loss.bound(limit)); limit != c.limit {
		c.limit, c.changed = limit, at
	}
	c.why = fmt.Sprintf("%d at a time: %s", c.limit, said)
	return c.limit
}
