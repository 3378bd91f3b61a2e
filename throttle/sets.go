package throttle

import (
	"cmp"
	"time"
)

// place is which of a ticket's knots a set uses. Sets share one where a ticket is
// in one of them at most.
type place int

const (
	queuePlace place = iota
	presentPlace
	nearPlace
	comingPlace
	gracePlace
	pullPlace
	duePlace
	idlePlace
	places
)

// sets are the tickets of a limiter that have not ended, each in the order in which
// it is looked at. A Waiting ticket is in sets of its class: in waiting and, while
// somebody stands there for it, in present and in one of due and overdue, else it is in
// absent. A Starting one is in one of starting and unheld.
type sets struct {
	classes  []*class // the free one, and those for which anybody waits
	classOf  map[string]*class
	grace    order // coming and not present; by when it comes
	pulling  order // between sandbox and first container; by since when
	absent   order // nobody stands there; by when it was asked for
	starting order // Starting with a slot; by admission
	unheld   order // Starting without a slot; by admission
	stalled  order // Starting with a slot and without progress; by since when
}

// by orders tickets by a time.
func by(key func(*Ticket) time.Time) func(a, b *Ticket) int {
	return func(a, b *Ticket) int {
		if c := key(a).Compare(key(b)); c != 0 {
			return c
		}
		return cmp.Compare(a.seq, b.seq)
	}
}

var (
	byAdmission = by(func(t *Ticket) time.Time { return t.admitted })
	byArrival   = by(func(t *Ticket) time.Time { return t.arrived })
	byDue       = by(func(t *Ticket) time.Time { return t.due })
)

func newSets() sets {
	free := newClass()
	return sets{
		classes:  []*class{free},
		classOf:  map[string]*class{free.key: free},
		starting: order{place: queuePlace, compare: byAdmission},
		unheld:   order{place: queuePlace, compare: byAdmission},
		grace:    order{place: gracePlace, compare: by(func(t *Ticket) time.Time { return t.comes })},
		pulling:  order{place: pullPlace, compare: by(func(t *Ticket) time.Time { return t.pulls })},
		absent:   order{place: idlePlace, compare: by(func(t *Ticket) time.Time { return t.asked })},
		stalled:  order{place: idlePlace, compare: by(func(t *Ticket) time.Time { return t.stalled })},
	}
}

func newClass() *class {
	return &class{
		waiting: order{place: queuePlace, compare: before},
		present: order{place: presentPlace, compare: before},
		near:    order{place: nearPlace, compare: before},
		coming:  order{place: comingPlace, compare: before},
		due:     order{place: duePlace, compare: byDue},
		overdue: order{place: duePlace, compare: byArrival},
	}
}

// repeatsCounted is the number of repeats beyond which one more makes no
// difference: kubelet's back-off has reached its longest by then.
const repeatsCounted = 5

// before is the order of the queue: priority, then first starts before repeated
// ones, then arrival, then the order of joining.
func before(a, b *Ticket) int {
	if a.priority != b.priority {
		return cmp.Compare(b.priority, a.priority)
	}
	if c := cmp.Compare(min(a.repeats, repeatsCounted), min(b.repeats, repeatsCounted)); c != 0 {
		return c
	}
	if c := a.arrived.Compare(b.arrived); c != 0 {
		return c
	}
	return cmp.Compare(a.seq, b.seq)
}

// joinQueueLocked adds a Waiting ticket for which nobody stands there.
func (l *Limiter) joinQueueLocked(t *Ticket) {
	t.class.waiting.insert(t)
	t.asked = t.seen
	l.absent.insert(t)
}

// leaveQueueLocked takes out a ticket that waits no longer.
func (l *Limiter) leaveQueueLocked(t *Ticket) {
	for _, set := range t.class.sets() {
		set.remove(t)
	}
	for _, set := range [...]*order{&l.grace, &l.pulling, &l.absent} {
		set.remove(t)
	}
	l.dropClassLocked(t.class)
}

// arriveLocked says that one more stands there for the ticket.
func (l *Limiter) arriveLocked(t *Ticket) {
	t.attended++
	if t.attended > 1 || t.state != Waiting {
		return
	}
	l.pulledLocked(t)
	l.absent.remove(t)
	l.grace.remove(t)
	t.class.near.insert(t)
	t.class.coming.insert(t)
	t.class.present.insert(t)
	l.setDueLocked(t)
}

// departLocked says that one less does.
func (l *Limiter) departLocked(now time.Time, t *Ticket) {
	t.seen = now
	if t.attended == 0 {
		return
	}
	t.attended--
	if t.attended > 0 || t.state != Waiting {
		return
	}
	l.cameLocked(now, t)
	t.class.present.remove(t)
	t.class.due.remove(t)
	t.class.overdue.remove(t)
	if !t.letUp {
		t.comes = now.Add(returnsWithin)
	}
	l.comesLocked(t, t.letUp, t.comes)
	t.asked = now
	l.absent.insert(t)
}

// moveLocked changes what the places of a Waiting ticket depend on.
func (l *Limiter) moveLocked(t *Ticket, change func()) {
	c := t.class
	present, near, coming := c.present.has(t), c.near.has(t), c.coming.has(t)
	for _, set := range c.sets() {
		set.remove(t)
	}
	change()
	c = t.class
	c.waiting.insert(t)
	if near {
		c.near.insert(t)
	}
	if coming {
		c.coming.insert(t)
	}
	if present {
		c.present.insert(t)
		l.setDueLocked(t)
	}
}

// setDueLocked puts a present ticket where its maxWait says.
func (l *Limiter) setDueLocked(t *Ticket) {
	t.class.due.remove(t)
	t.class.overdue.remove(t)
	t.due = t.arrived.Add(l.maxWaitLocked(t))
	t.class.due.insert(t)
}
