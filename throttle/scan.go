package throttle

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// candidates are whom one scan of the queue found.
type candidates struct {
	next    *Ticket // by the order of the queue
	overdue *Ticket // by that of the deadlines, of those whose MaxWait is over
	held    bool    // a group holds overdue, which may pass it
}

// candidates goes through the queue once, as the package documentation says. The limits of the
// node are asked afterwards: they hold all alike. To a bound that holds a ticket it may lend.
// last is the only one whose deadline is over, where it is given. A frozen queue has no next.
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

// begin begins a scan, which keeps nothing yet and takes nobody.
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

// each goes through those of the queue that are meant. One that no group holds counts as
// started from then on; one that is held keeps those behind from what it waits for.
func (q *queue) each(meant func(*Ticket) bool, found func(*Ticket, *ask) (more bool)) {
	for _, t := range q.inOrder() {
		if !meant(t) {
			continue
		}
		h := t.pod.held()
		if !found(t, h) {
			return
		}
		if h == nil {
			t.pod.take()
		} else {
			h.close()
		}
	}
}

// couldStart gives how many of those that are meant could start now if only groups held them.
func (q *queue) couldStart(meant func(*Ticket) bool) (n int) {
	q.begin()
	q.each(meant, func(_ *Ticket, h *ask) bool {
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

// places gives the places of all that wait: behind those that may start, and those that the
// same group holds.
func (q *queue) places(visit func(*Ticket, place) (more bool)) {
	q.begin()
	ahead, present := 0, 0
	q.each(func(*Ticket) bool { return true }, func(t *Ticket, h *ask) bool {
		at := place{ahead: ahead, present: present, hold: h}
		switch {
		case h == nil:
			ahead++
			present += one(t.waits())
		case !h.never():
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

// held gives what of its groups holds the pod, as the scan has left them; nil: nothing.
func (p *pod) held() *ask {
	for i := range p.asks {
		if p.asks[i].holds() {
			return &p.asks[i]
		}
	}
	return nil
}

// holds tells whether the pod would exceed the bound, beside what is in use and what this
// scan keeps of it. What is lent is for all, also behind one that the bound holds.
func (a *ask) holds() bool {
	b := a.bound
	used := b.used + b.kept + a.amount
	if a.bypass || a.counts() || used <= b.loan.upTo {
		return false
	}
	return b.closed || a.never() || used > b.allows
}

// counts tells whether the pod, which waits, counts against the bound already, as it runs: it
// would be held by itself.
func (a *ask) counts() bool {
	return a.pod.running && (a.bound.reason == reasons.PolicyRunning || a.bound.reason == reasons.PolicyPacer)
}

// foreseeOne has the bounds on starts of the pod's groups allow one such as it beside those
// that start, and any number where they have no claims.
func (p *pod) foreseeOne() {
	for i := range p.asks {
		switch a := &p.asks[i]; {
		case a.bound.reason == reasons.PolicyRunning:
		case a.bound.reason == reasons.PolicyClaim && a.bound.most == 0:
			a.bound.allows = anyNumber
		default:
			a.bound.allows = max(a.bound.allows, a.bound.used+a.amount)
		}
	}
}

// never tells whether the pod alone exceeds the bound. Those of pacers and claims change.
func (a *ask) never() bool {
	return a.amount > a.bound.most && (a.bound.reason == reasons.PolicyRunning || a.bound.reason == reasons.PolicyStarting)
}

// byRunning tells whether what holds is a bound of Running; nil holds nothing.
func (a *ask) byRunning() bool { return a != nil && a.bound.reason == reasons.PolicyRunning }

// says says to the caller of the limiter what holds the pod.
func (a *ask) says() Held {
	b, reason := a.bound, a.bound.reason
	if reason == reasons.PolicyRunning && a.never() {
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

// keepRunning reserves of the bounds of Running what the pod asks for, of one group or, nil,
// of all.
func (p *pod) keepRunning(of *group) {
	for i := range p.asks {
		if a := &p.asks[i]; a.byRunning() && !a.counts() && (of == nil || of == a.bound.group) {
			a.bound.kept += a.amount
		}
	}
}

// take counts the pod as started.
func (p *pod) take() {
	for i := range p.asks {
		if a := &p.asks[i]; !a.counts() {
			a.bound.kept += a.amount
		}
	}
}

// close lets nobody behind a pod that is held have what it waits for, nor, in the same group,
// what else of Running it asks for. One that exceeds a bound alone waits for nothing.
func (a *ask) close() {
	if a.never() {
		return
	}
	if a.byRunning() {
		a.pod.keepRunning(a.bound.group)
	}
	a.bound.closed = true
}
