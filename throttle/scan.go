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
// none is. What the ticket that asks waits for, and how many go before it, is found on the way (line): for that, each
// ticket that no group holds counts as started.

// scan is what one scan of the queue has counted of each bound so far, by bound.index.
type scan []tally

// tally is what a scan has counted of one bound.
type tally struct {
	allows   float64 // how much there may be, with what is used
	reserved float64 // for tickets already scanned
	closed   bool    // no ticket behind gets any of it
	held     int     // how many tickets its group holds so far; that of the first bound of the group counts
}

// begin begins a scan in the memory of an earlier one: all that the bounds allow is free.
func (q *queue) begin(s *scan) scan {
	q.groups.count()
	*s = (*s)[:0]
	for _, g := range q.groups.all {
		for i := range g.bounds {
			b := &g.bounds[i]
			b.index = len(*s)
			*s = append(*s, tally{allows: b.limit})
		}
	}
	return *s
}

// candidates are the tickets that one scan of the queue found.
type candidates struct {
	next    *Ticket  // the next in the queue; nil if there is none
	overdue *Ticket  // the most urgent of the overdue tickets; nil if there is none
	held    bool     // a group holds overdue, which may exceed its bound
	asking  position // of the ticket that asks
}

// candidates scans the queue once, as the head of this file says. It does not
// ask the limits of the node, which hold every ticket alike. asks is the ticket that asks for a start, or nil.
func (d *admission) candidates(now time.Time, asks *Ticket) (c candidates) {
	s, line := d.queue.begin(&d.queue.scanned), line{}
	if asks != nil {
		line.scan = d.queue.begin(&d.queue.lined)
	}
	for _, t := range d.queue.inOrder() {
		waits, heldBy := mayStart(now, t), s.heldBy(t.pod)
		for waits && heldBy != nil && heldBy.lend(now, d.settings.NoProgressAfter) {
			heldBy = s.heldBy(t.pod)
		}
		switch { // after the loans: they no longer hold what asks
		case asks == nil:
		case t == asks:
			c.asking, asks = line.position(t), nil
		default:
			line.next(t)
		}
		overdue := waits && !now.Before(t.due())
		if !waits && (len(t.pod.asks) == 0 || !t.awaited(now)) {
			continue // it reserves nothing
		}
		mayPass := heldBy == nil || d.overLimit == nil && !heldBy.ofRunning()
		if overdue && mayPass && (c.overdue == nil || d.moreUrgent(t, c.overdue)) {
			c.overdue, c.held = t, heldBy != nil
		}
		switch {
		case heldBy != nil:
			s.keepFromOthers(heldBy)
		case !waits:
			s.reserveRunning(t.pod, nil)
		case c.next == nil || d.queue.fairer(t, c.next):
			c.next = t
		}
	}
	return c
}

// each scans the included tickets. A ticket that no group holds counts as started for the tickets
// behind it. One that is held keeps from them what it waits for. One whose preparation fails does neither. visit gets
// what holds the ticket, or nil, and returns false to end the scan.
func (q *queue) each(s scan, include func(*Ticket) bool, visit func(*Ticket, *ask) (more bool)) {
	for _, t := range q.inOrder() {
		if !include(t) {
			continue
		}
		heldBy := s.heldBy(t.pod)
		if !visit(t, heldBy) {
			return
		}
		s.pass(t, heldBy)
	}
}

// couldStart returns how many of the included tickets no group holds. It counts up to most.
func (q *queue) couldStart(most int, include func(*Ticket) bool) (n int) {
	q.each(q.begin(&q.scanned), include, func(_ *Ticket, heldBy *ask) bool {
		n += oneIf(heldBy == nil)
		return n < most
	})
	return n
}

// position is where a Waiting ticket is in the queue.
type position struct {
	ahead   int  // how many tickets go before it
	present int  // how many of them have a waiter
	held    Held // what a group holds it for; the zero value if no group holds it
}

// line is a scan of all tickets that finds their positions. A ticket is behind the tickets that no group
// holds, and behind those that the same group holds.
type line struct {
	scan
	ahead, present int
}

// position returns the position of the next ticket of the queue.
func (l *line) position(t *Ticket) position {
	at := position{ahead: l.ahead, present: l.present}
	if heldBy := l.heldBy(t.pod); heldBy != nil {
		at.held = l.describe(heldBy)
		if !t.preparation.fails && !heldBy.neverFits() {
			at.ahead += *l.heldOf(heldBy.bound.group)
		}
	}
	return at
}

// next goes on behind the next ticket of the queue.
func (l *line) next(t *Ticket) {
	heldBy := l.heldBy(t.pod)
	switch {
	case t.preparation.fails:
	case heldBy == nil:
		l.ahead++
		l.present += oneIf(t.waits())
	case !heldBy.neverFits():
		*l.heldOf(heldBy.bound.group)++
	}
	l.pass(t, heldBy)
}

// position returns the position of a Waiting ticket.
func (q *queue) position(t *Ticket) position {
	line := line{scan: q.begin(&q.lined)}
	for _, o := range q.inOrder() {
		if o == t {
			break
		}
		line.next(o)
	}
	return line.position(t)
}

// pass goes on behind a ticket that a bound holds, or none.
func (s scan) pass(t *Ticket, heldBy *ask) {
	switch {
	case t.preparation.fails:
	case heldBy == nil:
		s.countAsStarted(t.pod)
	default:
		s.keepFromOthers(heldBy)
	}
}

func (s scan) of(b *bound) *tally { return &s[b.index] }

// heldOf returns the count of the tickets that a group with bounds holds.
func (s scan) heldOf(g *group) *int { return &s.of(&g.bounds[0]).held }

// heldBy returns the first of the pod's asks that is not free in this scan, or nil if all are free.
func (s scan) heldBy(p *pod) *ask {
	for i := range p.asks {
		if s.holds(&p.asks[i]) {
			return &p.asks[i]
		}
	}
	return nil
}

// holds reports whether the pod would exceed the bound, with what is in use and what this scan has
// reserved. What is lent is free for all pods, also for those behind a pod that the bound holds.
func (s scan) holds(a *ask) bool {
	b, t := a.bound, s.of(a.bound)
	used := b.used + t.reserved + a.amount
	if a.bypass || a.alreadyUses() || used <= b.loan.upTo {
		return false
	}
	return t.closed || a.neverFits() || used > t.allows
}

// describe returns what holds the pod, for callers of the package.
func (s scan) describe(a *ask) Held {
	b, reason := a.bound, a.bound.reason
	if reason == reasons.PolicyRunning && a.neverFits() {
		reason = reasons.Unadmittable
	}
	measured := min(b.used+s.of(b).reserved, max(b.used, b.limit))
	held := Held{Reason: reason, Policy: b.group.key, Measured: measured, Threshold: b.limit}
	if b.resource != "" { // in thousandths
		held.Resource, held.Asks = b.resource, a.amount/1000
		held.Measured /= 1000
		held.Threshold /= 1000
	}
	return held
}

// reserveRunning reserves what the pod asks for of the bounds of Running: of one group or, if it is
// nil, of all.
func (s scan) reserveRunning(p *pod, of *group) {
	for i := range p.asks {
		if a := &p.asks[i]; a.ofRunning() && !a.alreadyUses() && (of == nil || of == a.bound.group) {
			s.of(a.bound).reserved += a.amount
		}
	}
}

// countAsStarted counts the pod as started for the rest of the scan.
func (s scan) countAsStarted(p *pod) {
	for i := range p.asks {
		if a := &p.asks[i]; !a.alreadyUses() {
			s.of(a.bound).reserved += a.amount
		}
	}
}

// keepFromOthers closes the bound that holds the pod, for the tickets behind it, and reserves what else
// the pod asks for of Running in the same group. A pod that never fits keeps nothing.
func (s scan) keepFromOthers(a *ask) {
	if a.neverFits() {
		return
	}
	if a.ofRunning() {
		s.reserveRunning(a.pod, a.bound.group)
	}
	s.of(a.bound).closed = true
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
