package throttle

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// admission decides who starts: the next in the queue, or one whose deadline is over. It also
// decides who may wait near their turn, by what it expects of the starts under way.
type admission struct {
	settings        *Settings
	queue           *queue
	slots           *slots
	limits          *limits
	book            *book
	frozen          bool    // nobody is admitted in their turn
	overLimit       *Ticket // the last start over the limit, while it counts as such
	overOtherLimits bool    // overLimit exceeded more than the number of starts at a time
	queuesTurn      bool    // the next slot is the queue's, not that of a deadline
	oldestsTurn     bool    // of those overdue, the longest overdue is next
}

// try decides on a ticket that has a process for the length of the call. last: the process can
// wait no longer.
func (d *admission) try(now time.Time, t *Ticket, last bool) Decision {
	t.waiters++
	d.admit(now)
	if last && t.state == Waiting {
		d.admitOne(now, t)
	}
	t.waiters--
	if t.state != Waiting {
		return t.answer()
	}
	if !t.reserved {
		t.expectedBy = now.Add(returnsWithin)
	}
	at := d.queue.place(t)
	held := t.heldBy(at, d.held(now))
	return Decision{Reason: held.Reason, Held: held, Ahead: at.ahead}
}

// held gives the first limit of the node that holds the next start, and takes none; the zero
// value: every limit allows it.
func (d *admission) held(now time.Time) Held {
	if h := d.slots.held(); !h.none() {
		return h
	}
	return d.limits.held(now)
}

// admit serves those with a waiter until nothing allows another start.
func (d *admission) admit(now time.Time) {
	d.queue.forgetStuck(now)
	if d.slots.byKind() && !d.slots.planned {
		d.plan(now)
	}
	if t := d.overLimit; t != nil && (t.state != Starting || !d.overOtherLimits && d.slots.taken() <= d.slots.capacity()) {
		d.overLimit = nil
	}
	for !d.frozen && d.admitOne(now, nil) {
	}
}

// admitOne admits the next in the queue, or a pod whose deadline is over: one whose MaxWait is,
// or, if last is given, that one alone. Slots alternate between the queue and the deadlines
// while both are there: neither do the deadlines turn the order round, nor does the order let
// them wait for ever. A deadline for which no slot is free goes over the limit, unless the next
// slot is the queue's.
func (d *admission) admitOne(now time.Time, last *Ticket) bool {
	c := d.candidates(now, last)
	if c.next != nil {
		d.slots.follow(c.next)
	}
	slot, others := d.slots.held().none(), d.limits.held(now).none()
	open := slot && others
	inside := open && c.overdue != nil && d.slots.fits(c.overdue)
	passes := c.overdue != nil && (d.overLimit == nil || inside)
	queueFirst := d.queuesTurn && c.next != nil && c.next != c.overdue && now.Before(c.next.due())
	switch {
	case open && c.next != nil && (!passes || queueFirst || !now.Before(c.next.due())):
		d.admitNext(now, c.next)
	case passes && (inside || !others || !queueFirst):
		if c.held || !inside {
			d.overLimit, d.overOtherLimits = c.overdue, c.held || !others
		}
		d.queuesTurn = true
		reason := reasons.GateDeadline
		if last == nil {
			reason, d.oldestsTurn = reasons.MaxWait, !d.oldestsTurn
		}
		d.limits.take(now)
		d.book.start(now, c.overdue, reason, true)
	case c.next != nil && !slot && others && d.slots.lend(now, len(d.queue.arrivals)):
		d.admitNext(now, c.next)
	default:
		return false
	}
	return true
}

// admitNext admits a ticket that every limit allows.
func (d *admission) admitNext(now time.Time, t *Ticket) {
	reason := reasons.WithinLimits
	if !d.slots.hasOwn() || t.pod.lent() {
		reason = reasons.SlotLent
	}
	d.queuesTurn = false
	d.limits.take(now)
	d.book.start(now, t, reason, true)
}

// moreUrgent is the order of those whose MaxWait is over: priority, then the flow with the
// least load, then arrival. For every second of them, the longest overdue goes first: no
// others that come to be overdue keep it waiting for ever.
func (d *admission) moreUrgent(a, b *Ticket) bool {
	if d.oldestsTurn && !a.due().Equal(b.due()) {
		return a.due().Before(b.due())
	}
	if a.priority != b.priority {
		return a.priority > b.priority
	}
	return d.queue.fairer(a, b)
}

// wakeAt gives the earliest time at which Advance may have something to do.
func (d *admission) wakeAt(now time.Time) (next time.Time) {
	sooner := func(at time.Time) {
		if at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if starts := d.slots.inFlight; len(starts) > 0 {
		sooner(starts[0].admitted.Add(d.settings.StartTimeout))
	}
	for _, t := range d.queue.arrivals {
		if t.waits() {
			if d.overLimit == nil {
				sooner(t.due())
			}
			continue
		}
		sooner(t.seen.Add(abandonAfter))
		if len(t.pod.asks) > 0 {
			sooner(t.expectedBy) // what it reserves is free then
		}
	}
	sooner(d.limits.heldByRate(now).Until)
	for i := range d.limits.signals { // that is when its limit opens if it is not measured anew
		sooner(d.limits.signals[i].To.Add(readingKept + 1))
	}
	sooner(d.slots.loan.due(d.slots.jam(), d.settings.NoProgressAfter))
	for _, g := range d.queue.groups.all {
		for i := range g.bounds {
			sooner(g.bounds[i].loan.due(g.bounds[i].jam(), d.settings.NoProgressAfter))
		}
	}
	return next
}
