package leases

import "time"

// free gives the slots of the group that can be taken now, and for how long the oldest
// of them has been free.
func (p *planner) free(now time.Time, g *group) (free []int, age time.Duration) {
	held := 0
	for s := range p.slots.all(g.id) {
		if s.n >= g.limit && !s.gone && now.Before(s.freeAt()) {
			held++ // of a higher limit: it counts until it is given back
		}
	}
	for n := range g.limit {
		s := p.slots.get(g.id, n)
		switch {
		case s == nil:
			free, age = append(free, n), sinceEver
		case g.claims[n] != nil || !s.gone && now.Before(s.freeAt()):
			held++
		case s.busy || now.Before(s.retry):
		default:
			free, age = append(free, n), max(age, now.Sub(s.freeAt()))
		}
	}
	if held >= g.limit {
		return nil, 0
	}
	return free, age
}

// sinceEver is for how long a slot was free that nobody ever saw taken.
const sinceEver = time.Hour

// take tries to take one of the free slots when its moment has come.
func (p *planner) take(now time.Time, g *group, free []int, age time.Duration, alarm *alarm) {
	if g.missing() == 0 || g.taking || !p.known {
		return
	}
	if len(free) == 0 {
		g.attempt = time.Time{}
		p.awaitFree(now, g, alarm)
		return
	}
	if g.attempt.IsZero() {
		// That a slot is free for long tells nothing while others are seen to take some.
		if !g.rivals.IsZero() {
			age = min(age, now.Sub(g.rivals))
		}
		g.attempt = now.Add(g.spread.delay(p.rand, len(free), age))
		if g.fresh {
			// Many nodes may have got their pods at this moment.
			g.fresh = false
			g.attempt = g.attempt.Add(time.Duration(p.rand.Float64() * float64(min(mostJitter, time.Duration(p.nodes())*time.Millisecond))))
		}
	}
	if now.Before(g.attempt) {
		alarm.at(g.attempt)
		return
	}
	g.attempt, g.taking = time.Time{}, true
	n := free[p.rand.IntN(len(free))]
	p.call(now, g, takeSlot, p.slotOf(g, n))
}

// awaitFree wakes the planner when the next slot may be taken that is not renewed.
func (p *planner) awaitFree(now time.Time, g *group, alarm *alarm) {
	for s := range p.slots.all(g.id) {
		if at := s.freeAt(); at.After(now) && s.holder != p.holder {
			alarm.at(at)
		}
		if s.retry.After(now) {
			alarm.at(s.retry)
		}
	}
}
