package throttle

import "time"

// admitLocked serves those who are present, in order, until a limit refuses;
// then those who have waited for too long.
func (l *Limiter) admitLocked(now time.Time) {
	l.settleOverLocked()
	if l.presentLocked() == 0 {
		return
	}
	for {
		_, open := l.checkLocked(now)
		if !open && !l.mayLendLocked(now) {
			break
		}
		t := l.nextUpLocked()
		if t == nil || (!open && !l.lendLocked(now)) {
			break
		}
		l.admitFirstLocked(now, t)
	}
	if !l.mayPassLimitLocked() {
		return
	}
	if t := l.longestLocked(now); t != nil {
		l.passLimitLocked(now, t, MaxWait)
	}
}

// admitFirstLocked admits a ticket that every limit allows.
func (l *Limiter) admitFirstLocked(now time.Time, t *Ticket) {
	reason := Free
	if l.slots.most > 0 && l.starting.len() >= l.slots.most {
		reason = SlotLent
	}
	l.takeLocked(now)
	l.startLocked(now, t, reason, true)
}

// mayAdmitLocked tells whether anybody could be admitted now if t were present. No
// limit has become free unless this says so.
func (l *Limiter) mayAdmitLocked(now time.Time, t *Ticket) bool {
	if _, open := l.checkLocked(now); (open || l.mayLendLocked(now)) && (t.mayLead() || l.nextUpLocked() != nil) {
		return true
	}
	return l.mayPassLimitLocked() && (l.longestLocked(now) != nil ||
		(!now.Before(t.arrived.Add(l.maxWaitLocked(t))) && t.mayPassPolicies()))
}

// startLocked turns a Waiting ticket into a Starting one.
func (l *Limiter) startLocked(at time.Time, t *Ticket, reason Reason, slot bool) {
	l.leaveQueueLocked(t)
	t.reason, t.admission, t.admitted, t.slot = reason, reason, at, slot
	t.member.start(t)
	if slot {
		l.starting.insert(t)
	} else {
		l.unheld.insert(t)
	}
	close(t.decided)
	l.happenedLocked(Event{Kind: KindAdmitted, Time: at, Reason: reason, Took: max(0, at.Sub(t.arrived))}, t)
}

// endLocked ends a ticket once.
func (l *Limiter) endLocked(now time.Time, t *Ticket, reason Reason) {
	e := Event{Kind: KindEnded, Time: now, Reason: reason}
	switch t.state {
	case Waiting:
		l.leaveQueueLocked(t)
		l.endMemberLocked(t, Gone, reason)
		close(t.decided)
	case Starting:
		e.Took = max(0, now.Sub(t.admitted))
		l.giveBackLocked(t, reason, e.Took)
		l.endMemberLocked(t, reason.endState(), reason)
	default:
		return
	}
	t.reason, t.ended = reason, now
	l.rememberLocked(t)
	l.happenedLocked(e, t)
}

// giveBackLocked gives back the slot of a Starting ticket.
func (l *Limiter) giveBackLocked(t *Ticket, reason Reason, took time.Duration) {
	l.starting.remove(t)
	l.unheld.remove(t)
	l.stalled.remove(t)
	if !t.slot {
		return
	}
	l.settleOverLocked()
	l.repayLocked()
	if t.admission == Found {
		return // who knows since when
	}
	l.tally.add(t.admitted, took, reason)
	if reason.tellsPace() {
		l.history.add(took)
	}
}

// rememberLocked keeps the ended ticket, and forgets the oldest beyond the bound.
func (l *Limiter) rememberLocked(t *Ticket) {
	l.ended = append(l.ended, t)
	for len(l.ended) > endedKept {
		old := l.ended[0]
		l.ended = l.ended[1:]
		if l.tickets[old.uid] == old {
			delete(l.tickets, old.uid)
		}
	}
}

// refusalLocked says what a Waiting ticket, before which so many go, waits for. What a
// policy holds it for goes first: that may last longest.
func (l *Limiter) refusalLocked(now time.Time, t *Ticket, ahead int) Decision {
	d := Decision{Ahead: ahead}
	if t.held() {
		d.Held, _ = t.policyHolds()
	} else if held, ok := l.checkLocked(now); !ok {
		d.Held = held
	} else if n := l.presentBeforeLocked(t); n > 0 || t.attended > 0 {
		d.Held = Held{Reason: Queued, Measured: float64(n)}
	} else {
		d.Held = Held{Reason: Absent}
	}
	d.Reason = d.Held.Reason
	return d
}
