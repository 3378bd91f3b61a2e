package throttle

import "time"

// leastMaxWait is the least that a pod's own MaxWait counts as: what derives from a short
// activeDeadlineSeconds is no way past the queue.
const leastMaxWait = 30 * time.Second

func (l *Limiter) maxWaitLocked(t *Ticket) time.Duration {
	if t.maxWait > 0 {
		return min(max(t.maxWait, leastMaxWait), l.settings.maxWait())
	}
	return l.settings.maxWait()
}

// endTimedOutLocked ends the starts that take too long, and the waits for which nothing
// came back.
func (l *Limiter) endTimedOutLocked(now time.Time) {
	for i := 0; i < len(l.inFlight); {
		if t := l.inFlight[i]; now.Sub(t.admitted) >= l.settings.startTimeout() {
			l.endLocked(now, t, Stuck)
		} else {
			i++
		}
	}
	for i := 0; i < len(l.queue.arrivals); {
		if t := l.queue.arrivals[i]; t.waiters == 0 && now.Sub(t.seen) >= abandonAfter {
			l.endLocked(now, t, Abandoned)
		} else {
			i++
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
		sooner(l.inFlight[0].admitted.Add(l.settings.startTimeout()))
	}
	waiters := false
	for _, t := range l.queue.arrivals {
		switch {
		case t.waiters == 0:
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
	if l.jammedLocked() {
		if at, ok := l.opensAtLocked(now, true); ok {
			sooner(later(l.loanDueLocked(), at))
		}
	} else if at, ok := l.opensAtLocked(now, false); ok {
		sooner(at)
	}
	for _, g := range l.groups {
		if g.jammed(l.settings.noProgressAfter()) {
			sooner(g.loanDue(l.settings.noProgressAfter()))
		}
	}
	return next
}
