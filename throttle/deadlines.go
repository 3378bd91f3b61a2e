package throttle

import "time"

// settleOverLocked forgets the last start over the limit when it counts as such
// no longer: it ended; or it exceeded the number of starts at a time only, and so
// many others ended that it is within.
func (l *Limiter) settleOverLocked() {
	if l.over == nil {
		return
	}
	most := l.settings.MaxConcurrent
	if l.over.state != Starting || (!l.overAll && most > 0 && l.starting.len() <= most) {
		l.over = nil
	}
}

// mayPassLimitLocked tells whether a deadline may put one start above the limit:
// no other is.
func (l *Limiter) mayPassLimitLocked() bool {
	l.settleOverLocked()
	most := l.settings.MaxConcurrent
	return l.over == nil && (most <= 0 || l.starting.len() <= most)
}

// passLimitLocked admits a ticket over the limit.
func (l *Limiter) passLimitLocked(now time.Time, t *Ticket, reason Reason) {
	l.over, l.overAll = t, l.moreThanSlotsLocked(now)
	l.takeLocked(now)
	l.startLocked(now, t, reason, true)
}

// moreThanSlotsLocked tells whether another limit than the number of starts at a
// time refuses.
func (l *Limiter) moreThanSlotsLocked(now time.Time) bool {
	now = l.bucketTimeLocked(now)
	for _, lim := range l.limits {
		if _, slots := lim.(concurrency); slots {
			continue
		}
		if _, ok := lim.check(now, l.starting.len()); !ok {
			return true
		}
	}
	return false
}

func (l *Limiter) maxWaitLocked(t *Ticket) time.Duration {
	if t.maxWait > 0 {
		return t.maxWait
	}
	return l.settings.maxWait()
}

// longestLocked gives the present ticket that has waited longest of those whose
// maxWait is over, or nil. It looks at them only when the first maxWait is over.
func (l *Limiter) longestLocked(now time.Time) *Ticket {
	if now.Before(l.due) {
		return nil
	}
	var longest *Ticket
	l.due = time.Time{}
	for _, t := range l.present.tickets {
		due := t.arrived.Add(l.maxWaitLocked(t))
		if l.due.IsZero() || due.Before(l.due) {
			l.due = due
		}
		if now.Before(due) {
			continue
		}
		if longest == nil || t.arrived.Before(longest.arrived) {
			longest = t
		}
	}
	return longest
}

func (l *Limiter) timedOutLocked(now time.Time) (stuck []*Ticket) {
	for _, set := range []order{l.starting, l.unheld} {
		for _, t := range set.tickets {
			if now.Sub(t.admitted) >= l.settings.startTimeout() {
				stuck = append(stuck, t)
			}
		}
	}
	return stuck
}

func (l *Limiter) abandonedLocked(now time.Time) (gone []*Ticket) {
	for _, t := range l.waiting.tickets {
		if t.attended == 0 && now.Sub(t.seen) >= abandonAfter {
			gone = append(gone, t)
		}
	}
	return gone
}

// nextLocked gives the earliest time at which Advance has something to do.
func (l *Limiter) nextLocked(now time.Time) (next time.Time) {
	sooner := func(at time.Time) {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	for _, set := range []order{l.starting, l.unheld} {
		for _, t := range set.tickets {
			sooner(t.admitted.Add(l.settings.startTimeout()))
		}
	}
	passable := l.mayPassLimitLocked()
	for _, t := range l.waiting.tickets {
		switch {
		case t.attended == 0:
			sooner(t.seen.Add(abandonAfter))
		case passable:
			sooner(t.arrived.Add(l.maxWaitLocked(t)))
		}
	}
	if l.present.len() > 0 {
		if held, ok := l.checkLocked(now); !ok && !held.Until.IsZero() {
			sooner(held.Until)
		}
	}
	return next
}
