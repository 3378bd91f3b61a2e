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

// wantsLocked gives how many more claims each group could use now: for as many as come
// whom nothing but claims holds, and whom the node has room for.
func (l *Limiter) wantsLocked(now time.Time) map[*group]int {
	if _, open := l.checkLocked(now); !open {
		return nil
	}
	room := l.waitingLocked()
	if l.slots.most > 0 {
		room = l.slots.capacity() - l.starting.len()
	}
	late := map[*class]int{} // of those that come, who should have by now
	for t := range l.grace.all() {
		if now.Before(t.comes) {
			break
		}
		late[t.class]++
	}
	wants := map[*group]int{}
	for _, c := range l.classes {
		for _, g := range c.groups {
			if g.limits.given.Claims && g.claims >= 0 {
				wants[g] += c.wants(now, g, c.coming.len()-late[c])
			}
		}
	}
	for g, all := range wants {
		free := max(0, g.claims-int(g.starting.pods))
		wants[g] = max(0, min(room, all)-free)
	}
	return wants
}

// wants gives how many of the class, of whom so many come, the policies let start now if
// the group had claims for all.
func (c *class) wants(now time.Time, g *group, come int) int {
	t := c.firstToCome(now)
	if t == nil {
		return 0
	}
	least := int64(come)
	tell := func(more, _ int64) { least = min(least, more) }
	for i := range t.holds {
		h := &t.holds[i]
		if h.runs {
			h.group.limits.running.left(&h.group.running, h.asks, tell)
		}
		h.group.left(h.asks, h.paced, tell)
		if h.group != g {
			h.group.claimsLeft(tell)
		}
	}
	return int(least)
}

// firstToCome gives the first that stands there or, where nobody does, that will within
// seconds; nil: nobody will.
func (c *class) firstToCome(now time.Time) *Ticket {
	if t := c.present.first(); t != nil {
		return t
	}
	for t := range c.coming.all() {
		if now.Before(t.comes) {
			return t
		}
	}
	return nil
}
