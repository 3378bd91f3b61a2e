package throttle

import "math"

// aheadLocked gives how many Waiting tickets go before t: of each class that a policy
// holds, which does not hold t, only those that it lets start now.
func (l *Limiter) aheadLocked(t *Ticket) (ahead int) {
	if len(l.classes) == 1 {
		return t.class.waiting.rank(t)
	}
	for _, c := range l.classes {
		n := c.waiting.rank(t)
		if c != t.class && n > 0 {
			n = min(n, c.mayStart())
		}
		ahead += n
	}
	return ahead
}

// presentBeforeLocked gives how many of those that are present go before t, without
// those that a policy holds.
func (l *Limiter) presentBeforeLocked(t *Ticket) (before int) {
	for _, c := range l.classes {
		n := c.present.rank(t)
		if c != t.class && n > 0 {
			n = min(n, c.mayStart())
		}
		before += n
	}
	return before
}

// presentFreeLocked gives how many of those that are present could start now if nothing
// but policies held them.
func (l *Limiter) presentFreeLocked() (n int) {
	for _, c := range l.classes {
		if there := c.present.len(); there > 0 {
			n += min(there, c.mayStart())
		}
	}
	return n
}

// comingLocked gives how many stand there, or will within seconds, without those that
// a policy holds.
func (l *Limiter) comingLocked() (n int) {
	if len(l.classes) == 1 {
		return l.classes[0].coming.len()
	}
	for _, c := range l.classes {
		if come := c.coming.len(); come > 0 {
			n += min(come, c.mayStart())
		}
	}
	return n
}

// crowdLocked tells whether anybody waits whom no policy holds.
func (l *Limiter) crowdLocked() bool {
	for _, c := range l.classes {
		if c.waiting.len() > 0 && !c.held() {
			return true
		}
	}
	return false
}

// mayStart gives how many of the class the policies let start now.
func (c *class) mayStart() int {
	if c.free() {
		return math.MaxInt32
	}
	least := int64(math.MaxInt32)
	if t := c.leads(); t != nil {
		t.left(func(more, _ int64) { least = min(least, more) })
	}
	return int(least)
}

// left tells for each limit that may hold the ticket how many more such it lets start
// now, and how many such at a time; zero: no other starts when one of them ends.
func (t *Ticket) left(tell func(more, most int64)) {
	for i := range t.holds {
		h := &t.holds[i]
		if h.runs {
			h.group.limits.running.left(&h.group.running, h.asks, func(more, _ int64) { tell(more, 0) })
		}
		h.group.left(h.asks, h.paced, tell)
		h.group.claimsLeft(tell)
	}
}

// mayCome gives how many such as the ticket the policies are expected to let start
// while one can wait near its turn; seen as the node's room is, for as many as are there.
func (t *Ticket) mayCome(of *view) int {
	v := *of
	v.coming = t.class.coming.len()
	least := float64(math.MaxInt32)
	t.left(func(more, most int64) {
		starts := float64(more)
		if most > 0 {
			starts = v.starts(starts, float64(most), int(most))
		}
		least = min(least, starts)
	})
	return int(least)
}

// startsOverOnly tells whether the ticket alone exceeds a bound of Starting.
func (t *Ticket) startsOverOnly() bool {
	for i := range t.holds {
		if _, over := t.holds[i].group.limits.starting.exceeds(&usage{}, t.holds[i].asks); over {
			return true
		}
	}
	return false
}

// classRoom tells whether there is room for the ticket beside those of its class that
// come before it: no more than its policies let start in time. Where they let any start
// at all, there is room for one, which is there when they do.
func (t *Ticket) classRoom(v view) (Held, bool) {
	room := t.mayCome(&v)
	if !t.startsOverOnly() {
		room = max(1, room)
	}
	before, near := t.class.coming.rank(t), t.class.near.len()
	if t.class.near.has(t) {
		near--
	}
	if before < room && near < 2*room {
		return Held{}, true
	}
	if held, holds := t.policyHolds(); holds {
		return held, false
	}
	return noRoom(max(before, near), room), false
}

// comeBeforeLocked gives how many come before the ticket, and how many others are near
// their turn; of each other class, no more than its policies let start in time.
func (l *Limiter) comeBeforeLocked(t *Ticket, v *view) (before, near int) {
	before, near = t.class.coming.rank(t), t.class.near.len()
	if t.class.near.has(t) {
		near--
	}
	if len(l.classes) == 1 {
		return before, near
	}
	l.counting++
	t.class.spend(l.counting, before)
	for _, c := range l.classes {
		if c == t.class || c.coming.len() == 0 {
			continue
		}
		b, n := c.coming.rank(t), c.near.len()
		if !c.free() {
			most := max(0, c.coming.first().mayCome(v)-c.spent(l.counting))
			b, n = min(b, most), min(n, most)
			c.spend(l.counting, b)
		}
		before, near = before+b, near+n
	}
	return before, near
}

// spend counts so many starts for the groups of the class, in one count.
func (c *class) spend(count uint64, starts int) {
	for _, g := range c.groups {
		if g.spentAt != count {
			g.spent, g.spentAt = 0, count
		}
		g.spent += starts
	}
}

// spent gives how many starts were counted for any of the class's groups.
func (c *class) spent(count uint64) (most int) {
	for _, g := range c.groups {
		if g.spentAt == count {
			most = max(most, g.spent)
		}
	}
	return most
}
