package throttle

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// moreUrgent is the order of those whose MaxWait is over: priority, then the flow with the
// least load, then arrival. For every second of them, the longest overdue goes first: no
// others that come to be overdue keep it waiting for ever.
func (d *admission) moreUrgent(a, b *Ticket) bool {
	if d.oldestsTurn && !a.due.Equal(b.due) {
		return a.due.Before(b.due)
	}
	if a.priority != b.priority {
		return a.priority > b.priority
	}
	return d.queue.fairer(a, b)
}

// isQueuesTurn tells whether the next slot is that of the next in the queue, and not of one
// whose deadline is over. While the queue is frozen, none is.
func (d *admission) isQueuesTurn(now time.Time, next *Ticket) bool {
	return d.queuesTurn && !d.frozen && next != nil && now.Before(next.due)
}

// passGate admits a ticket over the limit whose process can wait no longer, if no other is
// above it and it is not the queue's turn.
func (d *admission) passGate(now time.Time, t *Ticket) {
	if d.overLimit != nil {
		return
	}
	c := d.candidates(now, t)
	theirs := c.next != t && d.isQueuesTurn(now, c.next) && d.limits.held(now).none()
	if c.overdue == t && !theirs {
		d.passLimit(now, t, c.held, reasons.GateDeadline)
		d.queuesTurn = c.next != t
	}
}

// passLimit admits a ticket for its deadline, which a group may hold. It counts as over the
// limit where it is: any other such has to wait until it is not.
func (d *admission) passLimit(now time.Time, t *Ticket, held bool, reason reasons.Reason) {
	slot, others := d.slots.held().none(), d.limits.held(now).none()
	d.queuesTurn = true
	d.limits.take(now)
	if beyond := held || !others; beyond || !slot {
		d.overLimit, d.overOtherLimits = t, beyond
	}
	d.book.start(now, t, reason, true)
}

// settleOver forgets the last start over the limit when it counts as such no longer: it
// ended; or it exceeded the number of starts at a time only, and so many others ended that
// it is within.
func (d *admission) settleOver() {
	t := d.overLimit
	stays := d.overOtherLimits || d.slots.limit <= 0 || d.slots.taken() > d.slots.capacity()
	if t != nil && (t.state != Starting || !stays) {
		d.overLimit = nil
	}
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
	waiters := false
	for _, t := range d.queue.arrivals {
		switch {
		case !t.waits():
			sooner(t.seen.Add(abandonAfter))
			if len(t.pod.asks) > 0 {
				sooner(t.expectedBy) // what it reserves is free then
			}
		default:
			waiters = true
			if d.overLimit == nil {
				sooner(t.due)
			}
		}
	}
	if !waiters {
		return next
	}
	sooner(d.limits.heldByRate(now).Until)
	for i := range d.limits.signals { // that is when its limit opens if it is not measured anew
		sooner(d.limits.signals[i].To.Add(readingKept + 1))
	}
	sooner(d.slots.loan.due(d.slots.jam(), d.settings.NoProgressAfter))
	for _, g := range d.scan.groups.all {
		for i := range g.bounds {
			sooner(g.bounds[i].loan.due(g.bounds[i].jam(), d.settings.NoProgressAfter))
		}
	}
	return next
}
