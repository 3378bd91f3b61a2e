package throttle

import "time"

// settleOverLocked forgets the last start over the limit when it counts as such
// no longer: it ended; or it exceeded the number of starts at a time only, and so
// many others ended that it is within.
func (l *Limiter) settleOverLocked() {
	if l.over == nil {
		return
	}
	if l.over.state != Starting || (!l.overAll && l.slots.most > 0 && l.starting.len() <= l.slots.capacity()) {
		l.over = nil
	}
}

// mayPassLimitLocked tells whether a deadline may put one start above the limit:
// no other is.
func (l *Limiter) mayPassLimitLocked() bool {
	l.settleOverLocked()
	return l.over == nil && (l.slots.most <= 0 || l.starting.len() <= l.slots.capacity())
}

// passLimitLocked admits a ticket over the limit.
func (l *Limiter) passLimitLocked(now time.Time, t *Ticket, reason Reason) {
	l.over, l.overAll = t, t.held() || !l.othersAllowLocked(now)
	l.takeLocked(now)
	l.startLocked(now, t, reason, true)
}

func (l *Limiter) maxWaitLocked(t *Ticket) time.Duration {
	if t.maxWait > 0 {
		return min(t.maxWait, l.settings.maxWait())
	}
	return l.settings.maxWait()
}

// longestLocked gives the present ticket that has waited longest of those whose
// maxWait is over and which may pass the limits, or nil.
func (l *Limiter) longestLocked(now time.Time) (longest *Ticket) {
	for _, c := range l.classes {
		for t := c.due.first(); t != nil && !now.Before(t.due); t = c.due.first() {
			c.due.remove(t)
			c.overdue.insert(t)
		}
		if c.overdue.len() == 0 {
			continue
		}
		if t := c.firstThatMayPass(&c.overdue); t != nil && (longest == nil || byArrival(t, longest) < 0) {
			longest = t
		}
	}
	return longest
}

// resetDueLocked puts every present ticket where its maxWait says, after the
// settings changed. It looks at all of them.
func (l *Limiter) resetDueLocked() {
	for _, c := range l.classes {
		for t := range c.present.all() {
			l.setDueLocked(t)
		}
	}
}

// endTimedOutLocked ends the starts that take too long.
func (l *Limiter) endTimedOutLocked(now time.Time) {
	for _, set := range []*order{&l.starting, &l.unheld} {
		for t := set.first(); t != nil && now.Sub(t.admitted) >= l.settings.startTimeout(); t = set.first() {
			l.endLocked(now, t, Stuck)
		}
	}
}

// firstAbsentLocked gives the ticket that was asked for longest ago of those for
// which nobody stands there, or nil. When one is asked for, its place in the set is
// left as it was; it is put right here.
func (l *Limiter) firstAbsentLocked() *Ticket {
	for {
		t := l.absent.first()
		if t == nil || !t.seen.After(t.asked) {
			return t
		}
		l.absent.remove(t)
		t.asked = t.seen
		l.absent.insert(t)
	}
}

// endAbandonedLocked ends the waits that nobody came back for.
func (l *Limiter) endAbandonedLocked(now time.Time) {
	for t := l.firstAbsentLocked(); t != nil && now.Sub(t.asked) >= abandonAfter; t = l.firstAbsentLocked() {
		l.endLocked(now, t, Abandoned)
	}
}

// nextLocked gives the earliest time at which Advance has something to do.
func (l *Limiter) nextLocked(now time.Time) (next time.Time) {
	sooner := func(at time.Time) {
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	for _, set := range []*order{&l.starting, &l.unheld} {
		if t := set.first(); t != nil {
			sooner(t.admitted.Add(l.settings.startTimeout()))
		}
	}
	if t := l.firstAbsentLocked(); t != nil {
		sooner(t.asked.Add(abandonAfter))
	}
	if l.presentLocked() == 0 {
		return next
	}
	if l.mayPassLimitLocked() {
		for _, c := range l.classes {
			if t := c.firstThatMayPass(&c.due); t != nil {
				sooner(t.due)
			}
		}
	}
	if len(l.classes) > 1 && l.nextUpLocked() == nil {
		return next
	}
	if l.jammedLocked() {
		if at, ok := l.openLocked(now, true); ok {
			sooner(later(l.loanDueLocked(), at))
		}
	} else if at, ok := l.openLocked(now, false); ok {
		sooner(at)
	}
	return next
}

// openLocked gives when all limits, or all but that of the starts at a time, allow
// one more start by themselves. ok is false where one does not know.
func (l *Limiter) openLocked(now time.Time, others bool) (at time.Time, ok bool) {
	for _, lim := range l.limits {
		if others && lim == limit(&l.slots) {
			continue
		}
		held, ok := lim.check(now)
		if ok {
			continue
		}
		until := later(held.Until, l.opensAtLocked(held))
		if until.IsZero() {
			return time.Time{}, false
		}
		at = later(at, until)
	}
	return at, true
}
