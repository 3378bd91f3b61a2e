package throttle

import (
	"slices"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// leastMaxWait is the least that a pod's own MaxWait counts as: what derives from a short
// activeDeadlineSeconds is no way past the queue.
const leastMaxWait = 30 * time.Second

// dueLocked gives when the ticket has waited for as long as it may.
func (l *Limiter) dueLocked(t *Ticket) time.Time {
	most := l.settings.MaxWait
	if t.maxWait > 0 {
		most = min(most, max(t.maxWait, leastMaxWait))
	}
	return t.arrived.Add(most)
}

// endTimedOutLocked ends the starts that take too long, and the waits for which nothing
// came back.
func (l *Limiter) endTimedOutLocked(now time.Time) {
	for len(l.inFlight) > 0 && now.Sub(l.inFlight[0].admitted) >= l.settings.StartTimeout {
		l.endLocked(now, l.inFlight[0], reasons.Stuck)
	}
	for _, t := range slices.Clone(l.queue.arrivals) {
		if !t.waits() && now.Sub(t.seen) >= abandonAfter {
			l.endLocked(now, t, reasons.Abandoned)
		}
	}
}

// wakeAtLocked gives the earliest time at which Advance has something to do.
func (l *Limiter) wakeAtLocked(now time.Time) (next time.Time) {
	sooner := func(at time.Time) {
		if at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if len(l.inFlight) > 0 {
		sooner(l.inFlight[0].admitted.Add(l.settings.StartTimeout))
	}
	waiters := false
	for _, t := range l.queue.arrivals {
		switch {
		case !t.waits():
			sooner(t.seen.Add(abandonAfter))
			if t.pod != nil {
				sooner(t.expectedBy) // what it reserves is free then
			}
		default:
			waiters = true
			if l.overLimit == nil {
				sooner(t.due)
			}
		}
	}
	if !waiters {
		return next
	}
	jam := l.jamLocked()
	opens := l.opensAtLocked(now, !jam.IsZero())
	if !jam.IsZero() {
		opens = later(opens, l.loan.due(jam, l.settings.NoProgressAfter))
	}
	sooner(opens)
	for _, g := range l.groups {
		sooner(l.loanDueLocked(g))
	}
	return next
}
