package throttle

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Overdue pods
//
// A pod is overdue when it has waited for MaxWait, that of its policies if it is less. Its own MaxWait counts as at least
// 30 seconds. Overdue pods go in the same order, but every second one is the pod whose MaxWait ended first. While there
// are pods that are not overdue, slots alternate between the queue and the overdue. An overdue pod starts over the limit
// unless another overdue pod is over it, or the next slot is for the queue. (If the queue is held by something other than
// the number of starts, no slot is kept for it.) So overdue pods take at most every second slot, and put at most one start
// over the limit. A start without a token of the rate limit is the only one in the time of a token: at most twice as many
// start as the rate limit allows.
//
// The deadline of a process is another time: until when it can wait. At its deadline ([Ticket.DeadlineReached]) it is
// refused, and its pod keeps its place.
//
// MaxWait limits the wait of every pod that has a waiter and that no bound of Running holds. A
// pod that becomes overdue after k others starts at most 2(k+1) StartTimeouts after its
// MaxWait, or as many times of a token if these are longer: all starts under way end within one StartTimeout of the
// start of an overdue pod. Then none is over the limit and the queue has had its slot, so the next overdue pod starts.
// Every second of these is the one that is overdue for longest, and pods that become overdue
// later do not come before it. (TestMaxWaitBoundsTheWaitOfEveryPod: at most 1.7(k+1), with
// tenants who fill the node with starts that hang.) Every such limit depends on k: if all starts
// hang, c slots and one over them start c+1 pods in a StartTimeout.

// admission decides which pod starts: the next in the queue, or one that is overdue. It also
// decides which pods may wait near their turn, by an estimate of when the starts under way end.
type admission struct {
	settings        *Settings
	queue           *queue
	slots           *slots
	limits          *limits
	tickets         *tickets
	frozen          bool    // no ticket is admitted in its turn
	together        bool    // nothing is decided yet, see Limiter.Together
	pause           Pause   // the same, and no overdue one
	overLimit       *Ticket // the start that exceeds the limits because it was overdue; nil if none does
	overOtherLimits bool    // overLimit exceeds another limit than the number of starts at a time
	queuesTurn      bool    // the next slot is for the queue, not for an overdue ticket
	oldestsTurn     bool    // of the overdue tickets, the one that is overdue for longest is next
}

// try decides on a ticket that has a waiter during this call.
func (d *admission) try(now time.Time, t *Ticket) Decision {
	t.waiters++
	at, scanned := d.admitFor(now, t)
	t.waiters--
	if t.state != Waiting {
		return t.answer()
	}
	if !t.reserved {
		t.awaitedUntil = now.Add(comesWithin)
	}
	if !scanned {
		at = d.queue.position(t)
	}
	held := t.heldBy(at, d.held(now))
	return Decision{Reason: held.Reason, Held: held, Ahead: at.ahead}
}

// held returns what holds the next start, the Pause or the first limit of the node, or the zero value if nothing
// does. It takes nothing.
func (d *admission) held(now time.Time) Held {
	h := d.pause.held(now)
	if h.none() {
		h = d.slots.held()
	}
	if h.none() {
		h = d.limits.held(now)
	}
	return h
}

// admit admits tickets with a waiter until nothing allows another start.
func (d *admission) admit(now time.Time) { d.admitFor(now, nil) }

// admitFor is admit. If it scans the queue, it returns the position of the ticket that asks, which means nothing if the
// ticket is admitted.
func (d *admission) admitFor(now time.Time, asks *Ticket) (at position, scanned bool) {
	if d.together {
		return at, false
	}
	d.queue.forgetStuck(now)
	if d.slots.byKind() && (!d.slots.planned || !d.queue.groups.counted) { // a plan is for the pods that no group holds
		d.plan(now)
	}
	if t := d.overLimit; t != nil {
		within := !d.overOtherLimits && d.slots.taken() <= d.slots.capacity()
		if within || t.state != Starting {
			d.overLimit, d.slots.beyond = nil, nil
		}
	}
	if d.frozen || !d.pause.held(now).none() {
		return at, false
	}
	for more := true; more; {
		c := d.candidates(now, asks)
		at, more = c.asking, d.admitOne(now, c)
	}
	return at, true
}

// admitOne admits one of the candidates, and reports whether it did: the next ticket of the queue, or the most
// urgent of the overdue ones.
//
// While there are tickets of both kinds, slots alternate between them. So overdue tickets cannot
// reverse the order of the queue, and the queue cannot keep an overdue ticket waiting for ever.
func (d *admission) admitOne(now time.Time, c candidates) bool {
	if c.next != nil {
		d.slots.follow(c.next)
	}
	slotFree, othersAllow := d.slots.held().none(), d.limits.held(now).none()
	allowed := slotFree && othersAllow

	overdue := c.overdue
	fits := allowed && overdue != nil && d.slots.fits(overdue)
	if (d.overLimit != nil || !d.limits.mayExceedRate(now)) && !fits {
		overdue = nil // only one start at a time may exceed the limits
	}
	nextIsDue := c.next != nil && !now.Before(c.next.due())
	queuesSlot := d.queuesTurn && c.next != nil && c.next != overdue && !nextIsDue

	switch {
	case allowed && c.next != nil && (overdue == nil || nextIsDue || queuesSlot):
		d.admitNext(now, c.next)
	case overdue != nil && (allowed || !othersAllow || !queuesSlot):
		if c.held || !fits {
			d.overLimit, d.overOtherLimits = overdue, c.held || !othersAllow
			if !slotFree {
				d.slots.beyond = overdue
			}
			d.slots.planned = false // the limit may be one for a smaller start, and seem to include this one
		}
		d.admitOverdue(now, overdue)
	case c.next != nil && !slotFree && othersAllow && (d.slots.lentTo(now, c.next.flow) > 0 || d.slots.lend(now, len(d.queue.arrivals))):
		d.admitNext(now, c.next)
	default:
		return false
	}
	return true
}

// admitOverdue admits a ticket for its MaxWait. The next slot is for the queue.
func (d *admission) admitOverdue(now time.Time, t *Ticket) {
	d.queuesTurn, d.oldestsTurn = true, !d.oldestsTurn
	d.limits.take(now)
	d.tickets.start(now, t, reasons.MaxWait, true)
}

// admitNext admits a ticket that every limit allows, some perhaps by a loan.
func (d *admission) admitNext(now time.Time, t *Ticket) {
	reason := reasons.WithinLimits
	if !d.slots.hasUnlent() || t.pod.startsOnLoan() {
		reason = reasons.SlotLent
	}
	d.queuesTurn = false
	d.limits.take(now)
	d.tickets.start(now, t, reason, true)
}

// moreUrgent reports whether overdue ticket a goes before overdue ticket b: as in the queue. For every second
// admission, the ticket that is overdue for longest goes first, so tickets that become overdue later cannot keep it
// waiting for ever.
func (d *admission) moreUrgent(a, b *Ticket) bool {
	if d.oldestsTurn && !a.due().Equal(b.due()) {
		return a.due().Before(b.due())
	}
	return d.queue.fairer(a, b)
}

// wakeAt returns the earliest time at which Advance may have something to do, or zero if there is none.
func (d *admission) wakeAt(now time.Time) (next time.Time) {
	sooner := func(at time.Time) {
		if at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if starts := d.slots.inFlight; len(starts) > 0 {
		sooner(starts[0].admitted.Add(d.settings.StartTimeout))
	}
	if stuck := d.queue.stuck; len(stuck) > 0 && d.queue.couldStart(1, (*Ticket).waits) > 0 { // then the order changes
		sooner(stuck[0].ended.Add(d.settings.StartTimeout))
	}
	for _, t := range d.queue.arrivals {
		if t.waits() {
			if d.overLimit == nil {
				sooner(t.due())
			}
			continue
		}
		sooner(t.seen.Add(abandonAfter))
		if len(t.pod.asks) > 0 {
			sooner(t.awaitedUntil) // then it reserves nothing any more
		}
	}
	sooner(d.pause.Until)
	sooner(d.limits.heldByRate(now).Until)
	sooner(d.limits.exceeded.Add(d.settings.FillEvery))
	for i := range d.limits.signals { // without a new reading, the limit opens then
		sooner(d.limits.signals[i].To.Add(readingValidFor + 1))
	}
	sooner(d.slots.loan.due(d.slots.jam(), d.settings.NoProgressAfter))
	for _, t := range d.slots.inFlight {
		if others := len(d.queue.arrivals) - t.flow.waits(); others > 0 && !t.stalledSince.IsZero() { // see lentTo
			sooner(t.stalledSince.Add(d.settings.NoProgressAfter))
		}
	}
	for _, g := range d.queue.groups.all {
		for i := range g.bounds {
			sooner(g.bounds[i].loan.due(g.bounds[i].jam(), d.settings.NoProgressAfter))
		}
	}
	return next
}
