package throttle

import "time"

// Reserve asks, before the images of the pod are pulled, whether the pod may come to wait
// near its turn, where it can wait for waitable at most. It takes no slot, but a place
// among those that pull images, until a process waits for the ticket or the reservation is
// given back. A ticket that is Starting or Started is always admitted, one that is Gone
// never.
func (t *Ticket) Reserve(now time.Time, waitable time.Duration) Decision {
	l := t.l
	l.mu.Lock()
	defer l.mu.Unlock()
	now = l.clockLocked(now)
	if t.state != Waiting {
		return t.answer()
	}
	t.seen = now
	l.askedLocked(now, t)
	d := l.reserveLocked(now, t, waitable)
	t.reserved, t.expectedBy = d.Admitted, now.Add(returnsWithin)
	if !d.Admitted {
		t.pullsSince = time.Time{}
		return d
	}
	t.expectedBy = now.Add(arrivalGrace)
	if !t.pulled && t.pullsSince.IsZero() {
		t.pullsSince = now
	}
	return d
}

// Unreserve gives a reservation back: the pod's sandbox is gone. The ticket keeps its
// place in the queue.
func (t *Ticket) Unreserve() {
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	if t.reserved {
		t.reserved, t.expectedBy = false, time.Time{}
	}
	t.pulled, t.pullsSince = false, time.Time{}
}

// KeepAlive says that the pod still means to start: its sandbox is there, and its images
// are being pulled. A ticket that nothing asks for is abandoned after ten minutes.
func (t *Ticket) KeepAlive(now time.Time) {
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	t.seen = t.l.clockLocked(now)
}

// TryStart asks for a slot on behalf of a process that cannot wait. A refusal takes
// nothing. A ticket that is Starting or Started is admitted, one that is Gone is not: the
// caller joins anew. The reason is that of Status then.
func (t *Ticket) TryStart(now time.Time) Decision {
	l := t.l
	l.mu.Lock()
	defer l.mu.Unlock()
	now = l.clockLocked(now)
	t.seen = now
	if t.state != Waiting {
		return t.answer()
	}
	l.askedLocked(now, t)
	t.pulled, t.pullsSince = true, time.Time{}
	t.waiters++
	if l.admitLocked(now) {
		l.changedLocked()
	}
	t.waiters--
	if t.state != Waiting {
		return t.answer()
	}
	if !t.reserved {
		t.expectedBy = now.Add(returnsWithin)
	}
	return l.refusalLocked(now, t)
}

// StartExempt admits the ticket at once: with a slot if every limit allows it, else
// without one. It passes over nobody: while a process waits, there is no free slot. It
// takes none that was lent. Without a slot it takes nothing, but owes what every start
// does: those that wait do not start into its load. Nothing happens to a ticket that is
// not Waiting.
func (t *Ticket) StartExempt(now time.Time) {
	l := t.l
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.changedLocked()
	now = l.clockLocked(now)
	l.admitLocked(now)
	if t.state != Waiting {
		return
	}
	_, free := l.checkLocked(now)
	free = free && (l.limit <= 0 || l.slotsLocked() < l.limit)
	if free {
		l.takeLocked(now)
	} else {
		l.debts.add(now)
	}
	l.startLocked(now, t, Exempt, free)
}

// Wait says that from now on a process waits for the ticket, which starts as soon as it
// is decided; StopWaiting takes it back. Calls may nest, and may come after the ticket was
// decided.
func (t *Ticket) Wait(now time.Time) {
	l := t.l
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.changedLocked()
	now = l.clockLocked(now)
	t.waiters++
	t.pulled, t.pullsSince = true, time.Time{}
	l.admitLocked(now)
}

// StopWaiting ends one Wait; without one it does nothing.
func (t *Ticket) StopWaiting(now time.Time) {
	l := t.l
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.changedLocked()
	now = l.clockLocked(now)
	t.seen = now
	if t.waiters == 0 {
		return
	}
	t.waiters--
	if t.waiters > 0 || t.state != Waiting {
		return
	}
	l.askedLocked(now, t)
	if !t.reserved || !now.Before(t.expectedBy) {
		t.reserved, t.expectedBy = false, now.Add(returnsWithin)
	}
	l.admitLocked(now) // what it kept for itself may be free
}

// DeadlineReached is called when the process that waits can wait no longer: the ticket is
// admitted over the limit if no other start is above it, else refused with GateExpired,
// and keeps its place. One that is no longer Waiting is answered as by TryStart.
func (t *Ticket) DeadlineReached(now time.Time) Decision {
	l := t.l
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.changedLocked()
	now = l.clockLocked(now)
	t.waiters++
	l.admitLocked(now)
	if t.state == Waiting && l.overLimit == nil && !l.runningHoldsLocked(now, t) {
		l.passLimitLocked(now, t, GateDeadline)
	}
	t.waiters--
	if t.state != Waiting {
		return t.answer()
	}
	if t.waiters == 0 && !t.reserved {
		t.expectedBy = now.Add(returnsWithin)
	}
	d := l.refusalLocked(now, t)
	d.Reason = GateExpired
	l.happenedLocked(Event{Kind: KindExpired, Time: now, Reason: GateExpired}, t)
	return d
}

// End ends the start for a reason: a Waiting ticket is Gone; a Starting one gives its
// slot back, and is Started or Gone as the reason says. Nothing happens to a ticket that
// has ended.
func (t *Ticket) End(now time.Time, reason Reason) {
	l := t.l
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.changedLocked()
	now = l.clockLocked(now)
	l.endLocked(now, t, reason)
	l.admitLocked(now)
}
