package throttle

import "slices"

// reservedLocked tells whether a bound of Running holds the ticket, with what those use
// that are near their turn already: they get what is free. Of those that are not near,
// the ones of its class that come before it count, too: a large pod that is away for
// seconds is not passed by small ones again and again.
func (l *Limiter) reservedLocked(t *Ticket) (Held, bool) {
	if held, holds := t.runningHolds(); holds {
		return held, true
	}
	for i := range t.holds {
		h := &t.holds[i]
		if !h.runs {
			continue
		}
		if held, full := l.fullLocked(t, h); full {
			held.Reason, held.Policy = PolicyRunning, h.group.key
			return held, true
		}
	}
	return Held{}, false
}

// fullLocked tells whether the bounds of Running of a group are used up with those that
// will run before the ticket.
func (l *Limiter) fullLocked(t *Ticket, h *hold) (held Held, full bool) {
	g := h.group
	used := usage{pods: g.running.pods}
	if bounds := g.limits.running.requests; len(bounds) > 0 {
		used.amounts = make(Amounts, len(bounds))
		for _, c := range bounds {
			used.amounts[c.resource] = g.running.amounts[c.resource]
		}
	}
	near := t.class.near.has(t)
	add := func(o *Ticket) bool {
		for i := range o.holds {
			if o.holds[i].group == g {
				used.add(o.holds[i].asks)
			}
		}
		held, full = g.limits.running.exceeds(&used, h.asks)
		return !full
	}
	for _, c := range l.classes {
		if c.never || !c.bounds(g) {
			continue
		}
		for o := range c.near.all() {
			if o != t && !(near && before(t, o) < 0) && !add(o) {
				return held, true
			}
		}
	}
	if near {
		return held, full
	}
	for o := range t.class.coming.all() {
		if o == t || before(t, o) < 0 {
			break
		}
		if !o.class.near.has(o) && !add(o) {
			return held, true
		}
	}
	return held, full
}

// bounds tells whether bounds of Running of the group may hold those of the class.
func (c *class) bounds(g *group) bool {
	return c.runs && slices.Contains(c.groups, g)
}
