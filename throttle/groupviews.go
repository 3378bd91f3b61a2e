package throttle

import (
	"slices"
	"time"
)

// Groups gives a copy of what is counted of each group that has pods or claims, in the
// order of their keys.
func (l *Limiter) Groups(now time.Time) []GroupView {
	l.mu.Lock()
	defer l.mu.Unlock()
	wants := l.wantsLocked(later(now, l.latest))
	views := make([]GroupView, 0, len(l.groups))
	for _, g := range l.groups {
		views = append(views, g.view(wants[g]))
	}
	slices.SortFunc(views, func(a, b GroupView) int { return a.Key.compare(b.Key) })
	return views
}

func (g *group) view(wants int) GroupView {
	v := GroupView{
		Key: g.key, Limits: g.limits.given,
		Starting: g.starting.copied(), Running: g.running.copied(),
		Ready: g.ready, Waiting: g.waiting, Claims: g.claims, Wants: wants,
	}
	v.Throttled.Starting = g.starting.reached(&g.limits.starting)
	v.Throttled.Running = g.running.reached(&g.limits.running)
	_, v.Throttled.Pacer = g.pacerHolds()
	_, v.Throttled.Claims = g.claimHolds()
	return v
}

// wantsLocked gives how many more claims each group could use now: as many of each
// class come as nothing but claims holds, and the node has room for.
func (l *Limiter) wantsLocked(now time.Time) map[*group]int {
	wants := map[*group]int{}
	if _, open := l.checkLocked(now); !open {
		return wants
	}
	room := l.waitingLocked()
	if l.slots.most > 0 {
		room = l.slots.capacity() - l.starting.len()
	}
	for _, c := range l.classes {
		for _, g := range c.groups {
			if n := min(room-wants[g], c.wants(g)); g.limits.given.Claims && n > 0 {
				wants[g] += n
			}
		}
	}
	return wants
}

// wants gives how many of the class come that nothing but claims of the group holds.
func (c *class) wants(g *group) int {
	t := c.present.first()
	if t == nil {
		t = c.coming.first()
	}
	if t == nil || g.claims < 0 {
		return 0
	}
	had := g.claims
	g.claims = -1
	defer func() { g.claims = had }()
	if _, held := t.policyHolds(); held {
		return 0
	}
	all := min(c.coming.len(), c.mayStart())
	return all - max(0, had-int(g.starting.pods))
}
