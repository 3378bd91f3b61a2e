package throttle

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// candidates are the tickets that one scan of the queue found.
type candidates struct {
	next    *Ticket // by the order of the queue
	overdue *Ticket // by that of the deadlines, of those whose MaxWait is over
	held    bool    // a group holds overdue, which may pass it
}

// candidates goes through the queue once, as the package documentation says under "A decision".
// It does not ask the limits of the node: they hold every ticket alike. If a loan to a bound is
// due that holds a ticket with a waiter, it lends. If last is given, no other ticket counts as
// overdue. A frozen queue has no next.
func (d *admission) candidates(now time.Time, last *Ticket) (c candidates) {
	d.queue.begin()
	for _, t := range d.queue.inOrder() {
		waits := t.waits()
		due := waits && (t == last || last == nil && !now.Before(t.due()))
		if c.next != nil && !due && byBand(c.next, t) != 0 {
			continue
		}
		if !waits && (len(t.pod.asks) == 0 || !now.Before(t.expectedBy)) {
			continue
		}
		h := t.pod.held()
		for waits && h != nil && h.lend(now, d.settings.NoProgressAfter) {
			h = t.pod.held()
		}
		passes := due && !h.byRunning() && (h == nil || d.overLimit == nil)
		if passes && (c.overdue == nil || d.moreUrgent(t, c.overdue)) {
			c.overdue, c.held = t, h != nil
		}
		switch {
		case h != nil:
			h.close()
		case !waits:
			t.pod.keepRunning(nil)
		case !d.frozen && (c.next == nil || byBand(c.next, t) == 0 && d.queue.fairer(t, c.next)):
			c.next = t
		}
	}
	return c
}

// begin begins a scan: all that the bounds allow is there to be had.
func (q *queue) begin() {
	q.groups.count()
	for _, g := range q.groups.all {
		g.behind = 0
		for i := range g.bounds {
			b := &g.bounds[i]
			b.allows, b.kept, b.closed = b.most, 0, false
		}
	}
}

// each scans the tickets that are included. One that no group holds counts as started for those
// behind it; one that is held keeps from them what it waits for. visit is told what holds the
// ticket, nil: nothing, and says whether to go on.
func (q *queue) each(include func(*Ticket) bool, visit func(*Ticket, *ask) (more bool)) {
	for _, t := range q.inOrder() {
		if !include(t) {
			continue
		}
		h := t.pod.held()
		if !visit(t, h) {
			return
		}
		if h == nil {
			t.pod.take()
		} else {
			h.close()
		}
	}
}

// couldStart counts the included tickets that could start now if only groups held them.
func (q *queue) couldStart(include func(*Ticket) bool) (n int) {
	q.begin()
	q.each(include, func(_ *Ticket, h *ask) bool {
		n += one(h == nil)
		return true
	})
	return n
}

// place is where a Waiting ticket is in the queue.
type place struct {
	ahead   int  // so many go before it
	present int  // of them have a waiter
	hold    *ask // of a group; nil: none holds it
}

// places visits all tickets with their places: a ticket is behind those that no group holds,
// and behind those that the same group holds as it.
func (q *queue) places(visit func(*Ticket, place) (more bool)) {
	q.begin()
	ahead, present := 0, 0
	q.each(func(*Ticket) bool { return true }, func(t *Ticket, h *ask) bool {
		at := place{ahead: ahead, present: present, hold: h}
		switch {
		case h == nil:
			ahead++
			present += one(t.waits())
		case !h.neverFits():
			at.ahead += h.bound.group.behind
			h.bound.group.behind++
		}
		return visit(t, at)
	})
}

// place gives the place of a Waiting ticket.
func (q *queue) place(t *Ticket) (its place) {
	q.places(func(o *Ticket, at place) bool {
		its = at
		return o != t
	})
	return its
}

// held gives the first bound that holds the pod, as the scan has left the bounds; nil: none does.
func (p *pod) held() *ask {
	for i := range p.asks {
		if p.asks[i].holds() {
			return &p.asks[i]
		}
	}
	return nil
}

// holds tells whether the pod would exceed the bound, with what is in use and what this scan
// keeps of it. What is lent is there for all, also for those behind one that the bound holds.
func (a *ask) holds() bool {
	b := a.bound
	used := b.used + b.kept + a.amount
	if a.bypass || a.alreadyUses() || used <= b.loan.upTo {
		return false
	}
	return b.closed || a.neverFits() || used > b.allows
}

// alreadyUses tells whether the pod, which waits to start anew, is among what uses the bound:
// it would be held by itself.
func (a *ask) alreadyUses() bool {
	return a.pod.running && (a.bound.reason == reasons.PolicyRunning || a.bound.reason == reasons.PolicyPacer)
}

// neverFits tells whether the pod alone exceeds the bound. What pacers and claims allow changes.
func (a *ask) neverFits() bool {
	return a.amount > a.bound.most && (a.bound.reason == reasons.PolicyRunning || a.bound.reason == reasons.PolicyStarting)
}

// byRunning tells whether the bound is one of Running; nil is none.
func (a *ask) byRunning() bool { return a != nil && a.bound.reason == reasons.PolicyRunning }

// describe gives what holds the pod in the words of the API.
func (a *ask) describe() Held {
	b, reason := a.bound, a.bound.reason
	if reason == reasons.PolicyRunning && a.neverFits() {
		reason = reasons.Unadmittable
	}
	held := Held{Reason: reason, Policy: b.group.key, Measured: min(b.used+b.kept, max(b.used, b.most)), Threshold: b.most}
	if b.resource != "" { // in thousandths
		held.Resource, held.Asks = b.resource, a.amount/1000
		held.Measured /= 1000
		held.Threshold /= 1000
	}
	return held
}

// keepRunning keeps from those behind what the pod asks for of the bounds of Running: of those
// of one group or, if it is nil, of all.
func (p *pod) keepRunning(of *group) {
	for i := range p.asks {
		if a := &p.asks[i]; a.byRunning() && !a.alreadyUses() && (of == nil || of == a.bound.group) {
			a.bound.kept += a.amount
		}
	}
}

// take counts the pod as started, for the rest of the scan.
func (p *pod) take() {
	for i := range p.asks {
		if a := &p.asks[i]; !a.alreadyUses() {
			a.bound.kept += a.amount
		}
	}
}

// close keeps from those behind a pod that is held what it waits for and, in the same group,
// what else it asks for of Running. A pod that never fits waits for nothing.
func (a *ask) close() {
	if a.neverFits() {
		return
	}
	if a.byRunning() {
		a.pod.keepRunning(a.bound.group)
	}
	a.bound.closed = true
}
