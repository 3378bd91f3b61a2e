package throttle

import "slices"

// class is the queue of the Waiting tickets that the same groups may hold, for the
// same resources. What holds its first ticket holds those behind it, and nobody
// else. The free class is of those that no policy bounds.
type class struct {
	key    string
	groups []*group // in the order of each ticket's holds; none: the free class
	runs   bool     // a bound of Running may hold it
	never  bool     // a bound of Running always does
	// Each in the order of the queue, but due and overdue.
	waiting order // all
	present order // somebody stands there
	near    order // present, or let up
	coming  order // present, or will be within seconds: let up, or refused
	due     order // present and maxWait not seen to be over; by when it is over
	overdue order // present and maxWait over; by arrival
}

// sets gives all sets of the class.
func (c *class) sets() [6]*order {
	return [...]*order{&c.waiting, &c.present, &c.near, &c.coming, &c.due, &c.overdue}
}

func (c *class) free() bool { return len(c.groups) == 0 }

// leads gives whoever is next of the class, where nobody is present even so.
func (c *class) leads() *Ticket {
	for _, set := range []*order{&c.present, &c.coming} {
		if t := set.first(); t != nil {
			return t
		}
	}
	return c.waiting.first()
}

// held tells whether a policy holds whoever is next of the class.
func (c *class) held() bool {
	if c.free() {
		return false
	}
	t := c.leads()
	return t != nil && t.held()
}

// classifyLocked puts a Waiting ticket into the class of those that the same bounds
// concern. One that is in a class already keeps its place in the queue.
func (l *Limiter) classifyLocked(t *Ticket) {
	key, holds := t.member.classKey()
	old := t.class
	if old != nil && old.key == key {
		t.holds = holds
		return
	}
	c := l.classOf[key]
	if c == nil {
		c = newClass()
		c.key = key
		for _, h := range holds {
			c.groups = append(c.groups, h.group)
			c.runs = c.runs || h.runs
			c.never = c.never || h.never
		}
		l.classOf[key] = c
		l.classes = append(l.classes, c)
	}
	if old == nil {
		t.class, t.holds = c, holds
		return
	}
	l.moveLocked(t, func() { t.class, t.holds = c, holds })
	l.dropClassLocked(old)
}

// dropClassLocked forgets a class for which nobody waits.
func (l *Limiter) dropClassLocked(c *class) {
	if c.free() || c.waiting.len() > 0 {
		return
	}
	delete(l.classOf, c.key)
	l.classes = slices.DeleteFunc(l.classes, func(o *class) bool { return o == c })
}

// nextUpLocked gives the first that is present and that no policy holds, or nil.
func (l *Limiter) nextUpLocked() (first *Ticket) {
	for _, c := range l.classes {
		t := c.present.first()
		if t == nil || (first != nil && before(first, t) < 0) {
			continue
		}
		if !t.held() {
			first = t
		}
	}
	return first
}

// mayLead tells whether no policy holds the ticket nor, were it present, anybody before
// it in its class.
func (t *Ticket) mayLead() bool {
	if first := t.class.present.first(); first != nil && first != t && before(first, t) < 0 {
		return false
	}
	return !t.held()
}

// mayPassPolicies tells whether a deadline may pass what holds the ticket: no bound
// of Running holds it, or whoever goes before it in its class.
func (t *Ticket) mayPassPolicies() bool {
	if !t.class.runs {
		return true
	}
	if _, holds := t.runningHolds(); holds {
		return false
	}
	first := t.class.present.first()
	if first == nil || first == t || before(t, first) < 0 {
		return true
	}
	_, holds := first.runningHolds()
	return !holds
}

// firstThatMayPass gives the first in an order of the class's tickets that a deadline may
// put above the limit, or nil.
func (c *class) firstThatMayPass(of *order) *Ticket {
	if !c.runs {
		return of.first()
	}
	if first := c.present.first(); first == nil || !first.mayPassPolicies() {
		return nil
	}
	for t := range of.all() {
		if t.mayPassPolicies() {
			return t
		}
	}
	return nil
}

func (l *Limiter) waitingLocked() (n int) {
	for _, c := range l.classes {
		n += c.waiting.len()
	}
	return n
}

func (l *Limiter) presentLocked() (n int) {
	for _, c := range l.classes {
		n += c.present.len()
	}
	return n
}
