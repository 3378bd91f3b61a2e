package throttle

import (
	"slices"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// candidates are whom one scan of the queue found.
type candidates struct {
	next    *Ticket // by the order of the queue
	overdue *Ticket // by that of the deadlines, of those whose MaxWait is over
	held    bool    // a group holds overdue, which may pass it
}

// candidatesLocked goes through the queue once. The next start is that of the first band
// in which a ticket has a waiter and no group holds it, of the flow with the least load.
// What it passes on its way:
//
//   - a ticket without a waiter that is expected: what it asks for is reserved;
//   - one that a bound of a group holds: nobody behind it gets what it waits for, unless a
//     loan is due to the group.
//
// Whether the limits of the node allow a start is asked afterwards: they hold all alike.
// Where it is asked of one ticket, that is the only one whose deadline is over; nil: all.
func (l *Limiter) candidatesLocked(now time.Time, of *Ticket) (c candidates) {
	l.beginScanLocked()
	for _, t := range l.orderLocked() {
		waits := t.waits()
		due := waits && (t == of || of == nil && !now.Before(t.due))
		if c.next != nil && !due && byBand(c.next, t) != 0 {
			continue
		}
		if !waits && (t.pod == nil || !now.Before(t.expectedBy)) {
			continue
		}
		h := t.groupHold()
		if waits && !h.none() && l.lendToGroupLocked(now, h) {
			h = t.groupHold()
		}
		passes := due && !h.byRunning() && (h.none() || l.overLimit == nil)
		if passes && (c.overdue == nil || l.moreUrgentLocked(t, c.overdue)) {
			c.overdue, c.held = t, !h.none()
		}
		switch {
		case !h.none():
			h.close()
		case !waits:
			t.pod.keepRunning(nil)
		case c.next == nil || (byBand(c.next, t) == 0 && l.fairerLocked(t, c.next)):
			c.next = t
		}
	}
	return c
}

// moreUrgentLocked is the order of those whose MaxWait is over: priority, then the flow
// with the least load, then arrival. For every second of them, the longest overdue goes
// first: no others that come to be overdue keep it waiting for ever.
func (l *Limiter) moreUrgentLocked(a, b *Ticket) bool {
	if l.oldestsTurn && !a.due.Equal(b.due) {
		return a.due.Before(b.due)
	}
	if a.priority != b.priority {
		return a.priority > b.priority
	}
	return l.fairerLocked(a, b)
}

// admitLocked serves those with a waiter until nothing allows another start.
func (l *Limiter) admitLocked(now time.Time) {
	l.settleOverLocked()
	l.forgetStuckLocked(now)
	for !l.frozen && l.admitOneLocked(now) {
	}
}

// admitOneLocked admits the next, or one whose deadline is over. Slots alternate between
// both while both are there: neither do the deadlines turn the order round, nor does the
// order let them wait for ever. A deadline that no slot is free for goes over the limit,
// unless the next slot is the queue's.
func (l *Limiter) admitOneLocked(now time.Time) bool {
	c := l.candidatesLocked(now, nil)
	if c.next == nil && c.overdue == nil {
		return false
	}
	slot, others := l.heldBySlotsLocked().none(), l.heldByOthersLocked(now).none()
	open := slot && others
	passes := c.overdue != nil && (l.overLimit == nil || open)
	theirs := l.isQueuesTurnLocked(now, c.next)
	switch {
	case open && c.next != nil && (!passes || theirs || !now.Before(c.next.due)):
		l.admitNextLocked(now, c.next)
	case passes && (open || !others || !theirs):
		l.passLimitLocked(now, c.overdue, c.held, reasons.MaxWait)
		l.oldestsTurn = !l.oldestsTurn
	case c.next != nil && !slot && others && l.lendLocked(now):
		l.admitNextLocked(now, c.next)
	default:
		return false
	}
	return true
}

// isQueuesTurnLocked tells whether the next slot is that of the next in the queue, and not
// of one whose deadline is over. While the queue is frozen, none is.
func (l *Limiter) isQueuesTurnLocked(now time.Time, next *Ticket) bool {
	return l.queuesTurn && !l.frozen && next != nil && now.Before(next.due)
}

// admitNextLocked admits a ticket that every limit allows.
func (l *Limiter) admitNextLocked(now time.Time, t *Ticket) {
	reason := reasons.WithinLimits
	if l.limit > 0 && l.slotsLocked() >= l.limit || t.pod.lent() {
		reason = reasons.SlotLent
	}
	l.queuesTurn = false
	l.takeLocked(now)
	l.startLocked(now, t, reason, true)
}

// passGateLocked admits a ticket over the limit whose process can wait no longer, if no
// other is above it and it is not the queue's turn.
func (l *Limiter) passGateLocked(now time.Time, t *Ticket) {
	if l.overLimit != nil {
		return
	}
	c := l.candidatesLocked(now, t)
	theirs := c.next != t && l.isQueuesTurnLocked(now, c.next) && l.heldByOthersLocked(now).none()
	if c.overdue == t && !theirs {
		l.passLimitLocked(now, t, c.held, reasons.GateDeadline)
		l.queuesTurn = c.next != t
	}
}

// passLimitLocked admits a ticket for its deadline, which a group may hold. It counts as
// over the limit where it is: any other such has to wait until it is not.
func (l *Limiter) passLimitLocked(now time.Time, t *Ticket, held bool, reason reasons.Reason) {
	slot, others := l.heldBySlotsLocked().none(), l.heldByOthersLocked(now).none()
	l.queuesTurn = true
	l.takeLocked(now)
	if beyond := held || !others; beyond || !slot {
		l.overLimit, l.overOtherLimits = t, beyond
	}
	l.startLocked(now, t, reason, true)
}

// settleOverLocked forgets the last start over the limit when it counts as such no longer:
// it ended; or it exceeded the number of starts at a time only, and so many others ended
// that it is within.
func (l *Limiter) settleOverLocked() {
	if t := l.overLimit; t == nil || t.state == Starting && (l.overOtherLimits || l.limit <= 0 || l.slotsLocked() > l.capacityLocked()) {
		return
	}
	l.overLimit = nil
}

// startLocked turns a Waiting ticket into a Starting one.
func (l *Limiter) startLocked(at time.Time, t *Ticket, reason reasons.Reason, slot bool) {
	l.queue.remove(t)
	t.state, t.reason, t.admission, t.admitted, t.slot = Starting, reason, reason, at, slot
	t.flow.starting++
	i := len(l.inFlight)
	for i > 0 && l.inFlight[i-1].admitted.After(at) { // one that was adopted
		i--
	}
	l.inFlight = slices.Insert(l.inFlight, i, t)
	if p := t.pod; p != nil {
		p.running, p.ready, p.stuckSince = true, false, time.Time{}
		l.counted = false
		p.spendLoans()
	}
	close(t.decided)
	l.happenedLocked(Event{State: Starting, Time: at, Reason: reason, Took: max(0, at.Sub(t.arrived))}, t)
}

// endLocked ends a ticket once.
func (l *Limiter) endLocked(now time.Time, t *Ticket, reason reasons.Reason) {
	e := Event{Time: now, Reason: reason}
	was := t.state
	switch was {
	case Waiting:
		l.queue.remove(t)
		t.state = Gone
		close(t.decided)
	case Starting:
		e.Took = max(0, now.Sub(t.admitted))
		t.state = endState(reason)
		l.giveBackLocked(now, t, reason, e.Took)
	default:
		return
	}
	t.reason, t.ended, e.State = reason, now, t.state
	t.flow.tickets--
	l.leaveGroupsLocked(t, was, now)
	l.rememberLocked(t)
	l.happenedLocked(e, t)
}

// giveBackLocked gives back the slot of a Starting ticket.
func (l *Limiter) giveBackLocked(now time.Time, t *Ticket, reason reasons.Reason, took time.Duration) {
	l.inFlight = slices.DeleteFunc(l.inFlight, func(o *Ticket) bool { return o == t })
	t.flow.starting--
	l.queue.stale = true
	if reason == reasons.Stuck {
		l.stuckLocked(now, t.flow)
	}
	if !t.slot {
		return
	}
	l.settleOverLocked()
	l.repayLocked()
	if t.admission == reasons.Adopted || t.admission == reasons.Exempt {
		return // since when, nobody knows; nor is it like those that wait
	}
	switch {
	case tellsPace(reason):
		l.took.add(took)
	case breaksOff(reason) && took >= lostAfter:
		l.lost = later(l.lost, t.admitted)
	}
}

// leaveGroupsLocked ends what a ticket counts for. A pod that was admitted counts among
// those that run until [Limiter.Finished].
func (l *Limiter) leaveGroupsLocked(t *Ticket, was State, now time.Time) {
	p := t.pod
	if p == nil {
		return
	}
	if was == Starting {
		p.ready = p.ready || tellsReady(t.reason)
		if t.reason == reasons.Stuck {
			p.stuckSince = now
		}
		p.repay()
	}
	p.ticket, t.pod = nil, nil
	l.counted = false
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
