package throttle

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// A decision
//
// A decision is one scan of the queue (candidates). For each ticket:
//
//   - If no process waits for it, but one should within seconds, the ticket is awaited. The scan
//     sets aside for it what it asks for of the bounds of Running of its groups. A pod is awaited
//     for 20 seconds after a refusal (kubelet retries within 15) or a reservation. After that,
//     the scan passes over it: a refused pod that kubelet has not retried does not block the
//     pods behind it. A ticket that yields, and is not overdue, counts as awaited.
//   - If a bound of a group holds it, the tickets behind it get nothing of that bound and, in
//     the same group, nothing else that it asks for. So a stream of small pods does not starve
//     a large one. Pods that do not ask for that bound pass.
//   - Else it is a candidate. The next ticket is the candidate of the flow with the fewest
//     starts under way, then of the highest priority, then with the fewest repeats, then the
//     first to arrive. Those that the forecast lets pass go before all others: they delay none
//     of them (package adaptive).
//
// Then the limits of the node are asked. Either all of them allow the start and are taken, or
// none is. What a ticket waits for, how many tickets go before it and how many could start is
// the result of another scan, which counts each ticket that nothing holds as started.

// candidates are the tickets that one scan of the queue found.
type candidates struct {
	next    *Ticket // the next in the queue; nil if there is none
	overdue *Ticket // the most urgent of the overdue tickets; nil if there is none
	held    bool    // a group holds overdue, which may exceed its bound
}

// candidates scans the queue once, as the head of this file says. It does not
// ask the limits of the node, which hold every ticket alike.
func (d *admission) candidates(now time.Time) (c candidates) {
	d.queue.begin()
	for _, t := range d.queue.inOrder() {
		waits := mayStart(now, t)
		overdue := waits && !now.Before(t.due())
		if !waits && (len(t.pod.asks) == 0 || !now.Before(t.awaitedUntil)) {
			continue // it reserves nothing
		}
		heldBy := t.pod.heldBy()
		for waits && heldBy != nil && heldBy.lend(now, d.settings.NoProgressAfter) {
			heldBy = t.pod.heldBy()
		}
		mayPass := heldBy == nil || d.overLimit == nil && !heldBy.ofRunning()
		if overdue && mayPass && (c.overdue == nil || d.moreUrgent(t, c.overdue)) {
			c.overdue, c.held = t, heldBy != nil
		}
		switch {
		case heldBy != nil:
			heldBy.keepFromOthers()
		case !waits:
			t.pod.reserveRunning(nil)
		case c.next == nil || d.queue.fairer(t, c.next):
			c.next = t
		}
	}
	return c
}

// begin begins a scan: all that the bounds allow is free.
func (q *queue) begin() {
	q.groups.count()
	for _, g := range q.groups.all {
		g.heldBefore = 0
		for i := range g.bounds {
			b := &g.bounds[i]
			b.allows, b.reserved, b.closed = b.limit, 0, false
		}
	}
}

// each scans the included tickets. A ticket that no group holds counts as started for the tickets
// behind it. One that is held keeps from them what it waits for. One whose preparation fails does neither. visit gets
// what holds the ticket, or nil, and returns false to end the scan.
func (q *queue) each(include func(*Ticket) bool, visit func(*Ticket, *ask) (more bool)) {
	for _, t := range q.inOrder() {
		if !include(t) {
			continue
		}
		heldBy := t.pod.heldBy()
		if !visit(t, heldBy) {
			return
		}
		switch {
		case t.preparation.fails:
		case heldBy == nil:
			t.pod.countAsStarted()
		default:
			heldBy.keepFromOthers()
		}
	}
}

// couldStart returns how many of the included tickets no group holds.
func (q *queue) couldStart(include func(*Ticket) bool) (n int) {
	q.begin()
	q.each(include, func(_ *Ticket, heldBy *ask) bool {
		n += oneIf(heldBy == nil)
		return true
	})
	return n
}

// position is where a Waiting ticket is in the queue.
type position struct {
	ahead   int  // how many tickets go before it
	present int  // how many of them have a waiter
	heldBy  *ask // what a group holds it for; nil if no group holds it
}

// positions visits all tickets with their positions. A ticket is behind the tickets that no group
// holds, and behind those that the same group holds.
func (q *queue) positions(visit func(*Ticket, position) (more bool)) {
	q.begin()
	ahead, present := 0, 0
	q.each(func(*Ticket) bool { return true }, func(t *Ticket, heldBy *ask) bool {
		at := position{ahead: ahead, present: present, heldBy: heldBy}
		switch {
		case t.preparation.fails:
		case heldBy == nil:
			ahead++
			present += oneIf(t.waits())
		case !heldBy.neverFits():
			at.ahead += heldBy.bound.group.heldBefore
			heldBy.bound.group.heldBefore++
		}
		return visit(t, at)
	})
}

// position returns the position of a Waiting ticket.
func (q *queue) position(t *Ticket) (its position) {
	q.positions(func(o *Ticket, at position) bool {
		its = at
		return o != t
	})
	return its
}

// heldBy returns the first of the pod's asks that is not free in this scan, or nil if all are free.
func (p *pod) heldBy() *ask {
	for i := range p.asks {
		if p.asks[i].holds() {
			return &p.asks[i]
		}
	}
	return nil
}

// holds reports whether the pod would exceed the bound, with what is in use and what this scan has
// reserved. What is lent is free for all pods, also for those behind a pod that the bound holds.
func (a *ask) holds() bool {
	b := a.bound
	used := b.used + b.reserved + a.amount
	if a.bypass || a.alreadyUses() || used <= b.loan.upTo {
		return false
	}
	return b.closed || a.neverFits() || used > b.allows
}

// alreadyUses reports whether the pod, which waits to start again, counts against the bound already.
func (a *ask) alreadyUses() bool {
	return a.pod.running && (a.bound.reason == reasons.PolicyRunning || a.bound.reason == reasons.PolicyPacer)
}

// neverFits reports whether the pod alone exceeds the bound. The limits of pacers and claims change, so
// they do not count.
func (a *ask) neverFits() bool {
	return a.amount > a.bound.limit && (a.bound.reason == reasons.PolicyRunning || a.bound.reason == reasons.PolicyStarting)
}

// ofRunning reports whether the bound is one of Running; false for nil.
func (a *ask) ofRunning() bool { return a != nil && a.bound.reason == reasons.PolicyRunning }

// describe returns what holds the pod, for callers of the package.
func (a *ask) describe() Held {
	b, reason := a.bound, a.bound.reason
	if reason == reasons.PolicyRunning && a.neverFits() {
		reason = reasons.Unadmittable
	}
	held := Held{Reason: reason, Policy: b.group.key, Measured: min(b.used+b.reserved, max(b.used, b.limit)), Threshold: b.limit}
	if b.resource != "" { // in thousandths
		held.Resource, held.Asks = b.resource, a.amount/1000
		held.Measured /= 1000
		held.Threshold /= 1000
	}
	return held
}

// reserveRunning reserves what the pod asks for of the bounds of Running: of one group or, if it is
// nil, of all.
func (p *pod) reserveRunning(of *group) {
	for i := range p.asks {
		if a := &p.asks[i]; a.ofRunning() && !a.alreadyUses() && (of == nil || of == a.bound.group) {
			a.bound.reserved += a.amount
		}
	}
}

// countAsStarted counts the pod as started for the rest of the scan.
func (p *pod) countAsStarted() {
	for i := range p.asks {
		if a := &p.asks[i]; !a.alreadyUses() {
			a.bound.reserved += a.amount
		}
	}
}

// keepFromOthers closes the bound that holds the pod, for the tickets behind it, and reserves what else
// the pod asks for of Running in the same group. A pod that never fits keeps nothing.
func (a *ask) keepFromOthers() {
	if a.neverFits() {
		return
	}
	if a.ofRunning() {
		a.pod.reserveRunning(a.bound.group)
	}
	a.bound.closed = true
}
