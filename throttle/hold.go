package throttle

import "github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"

// hold is what of a group holds a pod. The zero value holds nothing.
type hold struct {
	pod *pod
	*ask
}

func (h hold) none() bool { return h.pod == nil }

func (h hold) byRunning() bool { return !h.none() && h.bound.reason == reasons.PolicyRunning }

// beginScanLocked begins a scan of the queue, which keeps nothing yet and takes nobody.
func (l *Limiter) beginScanLocked() {
	l.countLocked()
	for _, g := range l.groups {
		g.taken, g.behind = 0, 0
		for i := range g.bounds {
			b := &g.bounds[i]
			b.allows, b.kept, b.closed = b.most, 0, false
		}
	}
}

// scanLocked goes through those of the queue that are meant, in its order. One that no group
// holds counts as started from then on; one that is held keeps those behind from what it
// waits for.
func (l *Limiter) scanLocked(meant func(*Ticket) bool, found func(*Ticket, hold) (more bool)) {
	for _, t := range l.orderLocked() {
		if !meant(t) {
			continue
		}
		h := t.groupHold()
		if !found(t, h) {
			return
		}
		if h.none() {
			t.pod.take()
		} else {
			h.close()
		}
	}
}

// couldStartLocked gives how many of those that are meant could start now if only groups
// held them.
func (l *Limiter) couldStartLocked(meant func(*Ticket) bool) (n int) {
	l.beginScanLocked()
	l.scanLocked(meant, func(_ *Ticket, h hold) bool {
		n += one(h.none())
		return true
	})
	return n
}

// groupHold gives what of its groups holds the ticket, as the scan has left them.
func (t *Ticket) groupHold() hold {
	if p := t.pod; p != nil {
		for i := range p.asks {
			if a := &p.asks[i]; a.holds(p) {
				return hold{p, a}
			}
		}
	}
	return hold{}
}

// holds tells whether the pod would exceed the bound, beside what is in use and what this
// scan keeps of it.
func (a *ask) holds(p *pod) bool {
	b := a.bound
	if a.bypass || (!b.closed && !a.never() && b.used+b.kept <= b.allows-a.amount) {
		return false
	}
	switch b.reason {
	case reasons.PolicyRunning:
		return !p.running // one that runs counts already, and would be held by itself
	case reasons.PolicyPacer:
		return !p.running && b.group.loan.left <= b.group.taken
	case reasons.PolicyStarting:
		return b.group.loan.left <= b.group.taken
	default:
		return true
	}
}

// foreseeOne has the bounds on starts of the pod's groups allow one such as it beside those
// that start: it is there when they do. How many claims come where there are none, nobody
// knows: the room of the node bounds who waits for them.
func (p *pod) foreseeOne() {
	if p == nil {
		return
	}
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

// held says it to the caller of the limiter.
func (h hold) held() Held {
	b, reason := h.bound, h.bound.reason
	if reason == reasons.PolicyRunning && h.never() {
		reason = reasons.Unadmittable
	}
	held := Held{Reason: reason, Policy: b.group.key, Measured: float64(min(b.used+b.kept, max(b.used, b.most))), Threshold: float64(b.most)}
	if b.resource != "" { // in thousandths
		held.Resource, held.Asks = b.resource, float64(h.amount)/1000
		held.Measured /= 1000
		held.Threshold /= 1000
	}
	return held
}

// keepRunning reserves of the bounds of Running what the pod asks for, of one group or, nil,
// of all.
func (p *pod) keepRunning(of *group) {
	if p == nil || p.running {
		return
	}
	for i := range p.asks {
		if a := &p.asks[i]; a.bound.reason == reasons.PolicyRunning && (of == nil || of == a.bound.group) {
			plus(&a.bound.kept, a.amount)
		}
	}
}

// take counts the pod as started.
func (p *pod) take() {
	if p == nil {
		return
	}
	for i := range p.in {
		p.in[i].group.taken++
	}
	for i := range p.asks {
		a := &p.asks[i]
		if r := a.bound.reason; p.running && (r == reasons.PolicyRunning || r == reasons.PolicyPacer) {
			continue // one that runs counts already
		}
		plus(&a.bound.kept, a.amount)
	}
}

// close lets nobody behind a pod that is held have what it waits for: a bound that many
// small pods keep full would hold a large one for ever. In the same group it keeps what
// else of Running the pod asks for. A bound that it exceeds alone waits for nothing.
func (h hold) close() {
	if h.never() {
		return
	}
	if h.byRunning() {
		h.pod.keepRunning(h.bound.group)
	}
	h.bound.closed = true
}
