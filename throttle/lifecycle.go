package throttle

import "time"

// admitLocked serves those who are present, in order, until a limit refuses;
// then those who have waited for too long.
func (l *Limiter) admitLocked(now time.Time) {
	l.settleOverLocked()
	for t := l.present.first(); t != nil; t = l.present.first() {
		if _, ok := l.checkLocked(now); !ok {
			break
		}
		l.takeLocked(now)
		l.startLocked(now, t, Free, true)
	}
	if !l.mayPassLimitLocked() {
		return
	}
	if t := l.longestLocked(now); t != nil {
		l.passLimitLocked(now, t, MaxWait)
	}
}

// presentLocked adds a Waiting ticket to those that are present.
func (l *Limiter) presentLocked(t *Ticket) {
	l.present.insert(t)
	if due := t.arrived.Add(l.maxWaitLocked(t)); due.Before(l.due) {
		l.due = due
	}
}

// startLocked turns a Waiting ticket into a Starting one.
func (l *Limiter) startLocked(at time.Time, t *Ticket, reason Reason, slot bool) {
	l.waiting.remove(t)
	l.present.remove(t)
	t.state, t.reason, t.admission, t.admitted, t.slot = Starting, reason, reason, at, slot
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
		l.waiting.remove(t)
		l.present.remove(t)
		t.state = Gone
		close(t.decided)
	case Starting:
		l.starting.remove(t)
		l.unheld.remove(t)
		t.state = reason.endState()
		e.Took = max(0, now.Sub(t.admitted))
		if t.slot && t.reason != Found && t.state == Started {
			l.history.add(e.Took)
		}
	default:
		return
	}
	t.reason, t.ended = reason, now
	l.rememberLocked(t)
	l.happenedLocked(e, t)
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

func (l *Limiter) refusalLocked(now time.Time, t *Ticket) Decision {
	d := Decision{Ahead: l.waiting.rank(t)}
	if held, ok := l.checkLocked(now); !ok {
		d.Reason, d.Held = held.Reason, held
	} else {
		d.Reason, d.Held = Queued, Held{Reason: Queued, Measured: float64(l.present.rank(t))}
	}
	return d
}
