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
// it is looked at. A Waiting ticket is in waiting and, while somebody stands there
// for it, in present and in one of due and overdue, else in absent. A Starting one is in
// one of starting and unheld.
type sets struct {
	waiting  order // Waiting; in the order of the queue
	present  order // somebody stands there; in the order of the queue
	near     order // present, or let up; in the order of the queue
	coming   order // present, or will be within seconds: let up, or refused; in the order of the queue
	grace    order // coming and not present; by when it comes
	pulling  order // between sandbox and first container; by since when
	due      order // present and maxWait not seen to be over; by when it is over
	overdue  order // present and maxWait over; by arrival
	absent   order // nobody stands there; by when it was asked for
	starting order // Starting with a slot; by admission
	unheld   order // Starting without a slot; by admission
	stalled  order // Starting with a slot and without progress; by since when
}

func newSets() sets {
	by := func(key func(*Ticket) time.Time) func(a, b *Ticket) int {
		return func(a, b *Ticket) int {
			if c := key(a).Compare(key(b)); c != 0 {
				return c
			}
			return cmp.Compare(a.seq, b.seq)
		}
	}
	admitted := by(func(t *Ticket) time.Time { return t.admitted })
	return sets{
		waiting:  order{place: queuePlace, compare: before},
		starting: order{place: queuePlace, compare: admitted},
		unheld:   order{place: queuePlace, compare: admitted},
		present:  order{place: presentPlace, compare: before},
		near:     order{place: nearPlace, compare: before},
		coming:   order{place: comingPlace, compare: before},
		grace:    order{place: gracePlace, compare: by(func(t *Ticket) time.Time { return t.comes })},
		pulling:  order{place: pullPlace, compare: by(func(t *Ticket) time.Time { return t.pulls })},
		due:      order{place: duePlace, compare: by(func(t *Ticket) time.Time { return t.due })},
		overdue:  order{place: duePlace, compare: by(func(t *Ticket) time.Time { return t.arrived })},
		absent:   order{place: idlePlace, compare: by(func(t *Ticket) time.Time { return t.asked })},
		stalled:  order{place: idlePlace, compare: by(func(t *Ticket) time.Time { return t.stalled })},
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
	l.waiting.insert(t)
	t.asked = t.seen
	l.absent.insert(t)
}

// leaveQueueLocked takes out a ticket that waits no longer.
func (l *Limiter) leaveQueueLocked(t *Ticket) {
	for _, set := range []*order{&l.waiting, &l.present, &l.near, &l.coming, &l.grace, &l.pulling, &l.due, &l.overdue, &l.absent} {
		set.remove(t)
	}
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
	l.near.insert(t)
	l.coming.insert(t)
	l.present.insert(t)
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
	l.cameLocked(now)
	l.present.remove(t)
	l.due.remove(t)
	l.overdue.remove(t)
	if !t.letUp {
		t.comes = now.Add(returnsWithin)
	}
	l.comesLocked(t, t.letUp, t.comes)
	t.asked = now
	l.absent.insert(t)
}

// moveLocked changes what the places of a Waiting ticket depend on.
func (l *Limiter) moveLocked(t *Ticket, change func()) {
	present, near, coming := l.present.has(t), l.near.has(t), l.coming.has(t)
	for _, set := range []*order{&l.waiting, &l.present, &l.near, &l.coming, &l.due, &l.overdue} {
		set.remove(t)
	}
	change()
	l.waiting.insert(t)
	if near {
		l.near.insert(t)
	}
	if coming {
		l.coming.insert(t)
	}
	if present {
		l.present.insert(t)
		l.setDueLocked(t)
	}
}

// setDueLocked puts a present ticket where its maxWait says.
func (l *Limiter) setDueLocked(t *Ticket) {
	l.due.remove(t)
	l.overdue.remove(t)
	t.due = t.arrived.Add(l.maxWaitLocked(t))
	l.due.insert(t)
}
