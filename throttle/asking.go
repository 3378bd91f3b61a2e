package throttle

import "time"

// LetUp asks, before the images of the pod are pulled, whether the pod may come
// up to wait near its turn, where one can wait for waitable at most. It takes no
// slot, but a place among those that pull images, until somebody stands at a
// container or the ticket is let down. A ticket that is no longer Waiting is always
// let up.
func (t *Ticket) LetUp(now time.Time, waitable time.Duration) Decision {
	l := t.l
	l.mu.Lock()
	defer l.mu.Unlock()
	now = l.clockLocked(now)
	if t.state != Waiting {
		return Decision{Admitted: true, Reason: t.reason}
	}
	t.seen = now
	l.cameLocked(now, t)
	d := l.letUpLocked(now, t, waitable)
	if d.Admitted {
		l.pullLocked(now, t)
		l.comesLocked(t, true, now.Add(arrivalGrace))
	} else {
		l.pulling.remove(t)
		l.comesLocked(t, false, now.Add(returnsWithin))
	}
	return d
}

// Expect says that somebody will still come for the ticket: its sandbox is there,
// and its images are being pulled. A ticket that nobody expects for ten minutes is
// abandoned.
func (t *Ticket) Expect(now time.Time) {
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	t.seen = t.l.clockLocked(now)
}

// LetDown takes back that the ticket was let up: its sandbox is gone. It keeps
// its place in the queue.
func (t *Ticket) LetDown() {
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	t.l.letDownLocked(t)
	t.pulled = false
}

// TryStart asks for a slot on behalf of somebody who stands there now and cannot
// wait. A refusal takes nothing. Of a ticket that is no longer Waiting the answer is
// Admitted, also where it is Gone, with the reason that Status gives.
func (t *Ticket) TryStart(now time.Time) Decision {
	l := t.l
	l.mu.Lock()
	defer l.mu.Unlock()
	now = l.clockLocked(now)
	t.seen = now
	if t.state != Waiting {
		return Decision{Admitted: true, Reason: t.reason}
	}
	l.cameLocked(now, t)
	l.pulledLocked(t)
	if t.class.runs && !t.letUp && t.attended == 0 {
		if held, full := l.reservedLocked(t); full {
			l.comesLocked(t, false, now.Add(returnsWithin))
			return Decision{Reason: held.Reason, Held: held, Ahead: l.aheadLocked(t)}
		}
	}
	l.tryLocked(now, t)
	if t.state != Waiting {
		return Decision{Admitted: true, Reason: t.reason}
	}
	if !t.class.free() && !t.letUp {
		l.comesLocked(t, false, now.Add(returnsWithin))
	}
	return l.refusalLocked(now, t, l.aheadLocked(t))
}

// tryLocked admits whoever may start now, with t among those present.
func (l *Limiter) tryLocked(now time.Time, t *Ticket) {
	if !l.mayAdmitLocked(now, t) {
		return
	}
	defer l.changedLocked()
	if first := l.nextUpLocked(); (first == nil || before(t, first) < 0) && t.mayLead() {
		if _, ok := l.checkLocked(now); ok {
			l.admitFirstLocked(now, t)
		}
	}
	l.arriveLocked(t)
	l.admitLocked(now)
	l.departLocked(now, t)
}

// StartExempt admits the ticket at once: with a slot if every limit allows it,
// else without one. Somebody who waits is not passed over: while anybody does,
// there is no free slot. It takes none that was lent. Without a slot it takes nothing,
// but owes what every start does: those that wait do not start into its load. Nothing
// happens to a ticket that is not Waiting.
func (t *Ticket) StartExempt(now time.Time) {
	l := t.l
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.changedLocked()
	now = l.clockLocked(now)
	if t.state != Waiting {
		return
	}
	l.admitLocked(now)
	if t.state != Waiting {
		return
	}
	_, free := l.checkLocked(now)
	if l.slots.most > 0 && l.starting.len() >= l.slots.most {
		free = false
	}
	if free {
		l.takeLocked(now)
	} else {
		l.takes.add(now)
	}
	l.startLocked(now, t, Exempt, free)
}

// Attend says that from now on somebody stands there who starts the process as
// soon as the ticket is decided; Leave takes it back. Calls may nest, and may come after
// the ticket was decided.
func (t *Ticket) Attend(now time.Time) {
	l := t.l
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.changedLocked()
	now = l.clockLocked(now)
	l.arriveLocked(t)
	l.admitLocked(now)
}

// Leave ends one Attend; without one it does nothing.
func (t *Ticket) Leave(now time.Time) {
	l := t.l
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.changedLocked()
	l.departLocked(l.clockLocked(now), t)
}

// Expire is called when the one who stands there can wait no longer: the ticket
// is admitted over the limit if no other start is above it, else refused with
// GateExpired, and keeps its place. One that is no longer Waiting is answered as by
// TryStart.
func (t *Ticket) Expire(now time.Time) Decision {
	l := t.l
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.changedLocked()
	now = l.clockLocked(now)
	l.arriveLocked(t)
	l.admitLocked(now)
	l.departLocked(now, t)
	if t.state == Waiting && l.mayPassLimitLocked() && t.mayPassPolicies() {
		l.passLimitLocked(now, t, GateDeadline)
	}
	if t.state != Waiting {
		return Decision{Admitted: true, Reason: t.reason}
	}
	d := l.refusalLocked(now, t, l.aheadLocked(t))
	d.Reason = GateExpired
	l.happenedLocked(Event{Kind: KindExpired, Time: now, Reason: GateExpired}, t)
	return d
}

// End ends the start for a reason: a Waiting ticket is Gone; a Starting one
// gives its slot back, and is Started or Gone as the reason says. Nothing
// happens to a ticket that has ended.
func (t *Ticket) End(now time.Time, reason Reason) {
	l := t.l
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.changedLocked()
	now = l.clockLocked(now)
	l.endLocked(now, t, reason)
	l.admitLocked(now)
}
