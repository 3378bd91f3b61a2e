package throttle

import (
	"time"
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
		if t.waits() {
			waiters = true
			if d.overLimit == nil {
				sooner(t.due)
			}
			continue
		}
		sooner(t.seen.Add(abandonAfter))
		if len(t.pod.asks) > 0 {
			sooner(t.expectedBy) // what it reserves is free then
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
