package throttle

import (
	"slices"
	"time"
)

// group is what is counted of one group. It is there while any pod is in it, or claims
// were given to it. What is counted is counted anew after each change, see countLocked.
type group struct {
	key    GroupKey
	limits *groupLimits // of its policy
	claims int          // below zero: any number
	loan   loan
	left   int // starts that may still pass its limits on starts, by the loan

	pods, waiting, ready int
	since                []time.Time // those that start do
	starting, running    usage       // that start; that were admitted and have not finished
	// Without progress: of those that start; of those that the pacer counts.
	stalledStarts, stalledPaced int64
	lastStall                   time.Time

	// Of one scan.
	scan     uint64
	taken    usage   // by those that the scan lets go before
	keptPods int64   // reserved of the bounds of Running, for those before
	kept     []int64 // by resource; also what nobody behind may have
	closed   []int64 // the same of the bounds of Starting
	behind   int     // it holds so many of those before
	near     int
}

// usage is what some pods use: of each resource that limits bound.
type usage struct {
	pods     int64
	requests []int64
}

func (u *usage) reset(resources int) {
	u.pods, u.requests = 0, slices.Grow(u.requests[:0], resources)[:resources]
	clear(u.requests)
}

func (u *usage) add(asks []int64) {
	u.pods++
	for r, amount := range asks {
		u.requests[r] += amount
	}
}

// countLocked counts what is in the groups, after anything of it has changed.
func (l *Limiter) countLocked() {
	if l.counted {
		return
	}
	l.counted = true
	for _, g := range l.groups {
		n := len(g.limits.resources)
		g.starting.reset(n)
		g.running.reset(n)
		g.pods, g.waiting, g.ready, g.stalledStarts, g.stalledPaced, g.lastStall = 0, 0, 0, 0, 0, time.Time{}
		g.since = g.since[:0]
	}
	for _, p := range l.pods {
		for i := range p.in {
			p.in[i].group.count(p, p.in[i].asks)
		}
	}
	for key, g := range l.groups {
		if g.pods == 0 && g.claims == 0 {
			delete(l.groups, key)
		}
	}
}

func (g *group) count(p *pod, asks []int64) {
	g.pods++
	if t := p.ticket; t != nil && t.state == Waiting {
		g.waiting++
	}
	stalled := p.stuckSince
	if t := p.ticket; t != nil && t.state == Starting {
		g.starting.add(asks)
		g.since = append(g.since, t.admitted)
		if stalled = t.stalled; !stalled.IsZero() {
			g.stalledStarts++
		}
	}
	if !p.running {
		return
	}
	g.running.add(asks)
	if p.ready {
		g.ready++
	} else if !stalled.IsZero() {
		g.stalledPaced++
		g.lastStall = later(g.lastStall, stalled)
	}
}

// paced is how many start as the pacer counts.
func (g *group) paced() int64 { return g.running.pods - int64(g.ready) }

// scan is one way through the queue. What a group lets pass in it, and what it keeps, is
// reset when the scan comes to the group.
type scan struct {
	l      *Limiter
	number uint64
	claims *group // whose claims do not hold; nil: all do
}

func (l *Limiter) scanLocked() scan {
	l.countLocked()
	l.scans++
	return scan{l: l, number: l.scans}
}

// group gives the group as this scan has left it.
func (s *scan) group(g *group) *group {
	if g.scan != s.number {
		n := len(g.limits.resources)
		g.scan, g.keptPods, g.behind, g.near = s.number, 0, 0, 0
		g.taken.reset(n)
		g.kept = slices.Grow(g.kept[:0], n)[:n]
		g.closed = slices.Grow(g.closed[:0], n)[:n]
		clear(g.kept)
		clear(g.closed)
	}
	return g
}

// hold is a bound of a group that holds a ticket.
type hold struct {
	in       *podInGroup // nil: nothing holds it
	running  bool        // a bound of Running
	resource int         // of which; below zero: of pods
	reason   Reason
	used     int64
	most     int64
}

// closedFor is more than any bound: nobody behind gets anything of it.
const closedFor = mostAmount * 2

// holds gives the bound of a group that holds the ticket: one of Running before any other.
func (s *scan) holds(t *Ticket) (h hold) {
	if t.pod == nil {
		return hold{}
	}
	if h = s.runningHolds(t); h.in != nil {
		return h
	}
	for i := range t.pod.in {
		if in := &t.pod.in[i]; !in.bypass && in.group.limits != noLimits {
			if h = s.startingHolds(in, t.pod.running); h.in != nil {
				return h
			}
		}
	}
	return hold{}
}

// runningHolds gives the bound of Running that holds the ticket. None holds a pod that
// runs: it counts already, and would be held by itself.
func (s *scan) runningHolds(t *Ticket) hold {
	if t.pod == nil || t.pod.running {
		return hold{}
	}
	for i := range t.pod.in {
		in := &t.pod.in[i]
		if in.bypass || in.group.limits == noLimits {
			continue
		}
		g, b := s.group(in.group), &in.group.limits.running
		h := b.exceeded(in, g.running.pods+g.keptPods, g.running.requests, g.kept)
		if h.in == nil {
			continue
		}
		h.running, h.reason = true, PolicyRunning
		return h
	}
	return hold{}
}

// startingHolds gives what else of a group holds a pod.
func (s *scan) startingHolds(in *podInGroup, running bool) hold {
	g := s.group(in.group)
	starting, limits := g.starting.pods+g.taken.pods, g.limits
	if limits.given.Claims && g.claims >= 0 && s.claims != g && starting >= int64(g.claims) {
		return hold{in: in, resource: -1, reason: PolicyClaim, used: starting, most: int64(g.claims)}
	}
	if int64(g.left) > g.taken.pods {
		return hold{}
	}
	if h := limits.starting.exceeded(in, starting, g.starting.requests, g.closed); h.in != nil {
		h.reason = PolicyStarting
		return h
	}
	if running {
		return hold{}
	}
	paced := g.paced() + g.taken.pods
	if most, bounded := limits.given.Pacer.allows(g.ready); bounded && paced >= int64(most) {
		return hold{in: in, resource: -1, reason: PolicyPacer, used: paced, most: int64(most)}
	}
	return hold{}
}

// exceeded tells whether one more pod is above the bounds, beside those that are in use
// and what is kept of each resource, and where.
func (b *bounds) exceeded(in *podInGroup, pods int64, used, kept []int64) hold {
	if b.pods >= 0 && pods >= b.pods {
		return hold{in: in, resource: -1, used: pods, most: b.pods}
	}
	for r, most := range b.requests {
		if most < 0 || in.asks[r] == 0 {
			continue
		}
		var sum int64
		if used != nil {
			sum = used[r] + kept[r]
		}
		if sum > most-in.asks[r] {
			return hold{in: in, resource: r, used: min(sum, most), most: most}
		}
	}
	return hold{}
}

// never tells whether the ticket alone exceeds the bound.
func (h *hold) never() bool {
	switch h.reason {
	case PolicyRunning:
		alone := h.in.group.limits.running.exceeded(h.in, 0, nil, nil)
		return alone.in != nil
	case PolicyStarting:
		return h.in.startsNever()
	default:
		return false
	}
}

// startsNever tells whether the pod alone exceeds a bound on the starts of its group.
func (in *podInGroup) startsNever() bool {
	alone := in.group.limits.starting.exceeded(in, 0, nil, nil)
	return alone.in != nil
}

// held says it to the caller of the limiter.
func (h *hold) held() Held {
	g := h.in.group
	if alone := g.limits.running.exceeded(h.in, 0, nil, nil); h.running && alone.in != nil {
		h.reason, h.resource, h.used, h.most = Unadmittable, alone.resource, alone.used, alone.most
	}
	held := Held{Reason: h.reason, Policy: g.key, Measured: float64(h.used), Threshold: float64(h.most)}
	if h.resource >= 0 {
		held.Resource = g.limits.resources[h.resource]
		held.Measured, held.Threshold = units(h.used), units(h.most)
		held.Asks = units(h.in.asks[h.resource])
	}
	return held
}

// units gives thousandths in units.
func units(amount int64) float64 { return float64(amount) / 1000 }

// keep reserves of the bounds of Running what the ticket asks for.
func (s *scan) keep(t *Ticket) {
	if t.pod == nil || t.pod.running {
		return
	}
	for i := range t.pod.in {
		in := &t.pod.in[i]
		g := s.group(in.group)
		g.keptPods++
		for r, amount := range in.asks {
			g.kept[r] += amount
		}
	}
}

// take counts the ticket as started.
func (s *scan) take(t *Ticket) {
	if t.pod == nil {
		return
	}
	s.keep(t)
	for i := range t.pod.in {
		in := &t.pod.in[i]
		g := s.group(in.group)
		g.taken.add(in.asks)
		for r, amount := range in.asks {
			g.closed[r] += amount
		}
	}
}

// stop lets nobody behind a ticket that is held have what it waits for: a bound that many
// small pods keep full would hold a large one for ever. In the same group it keeps what
// else the ticket asks for. A bound that it exceeds alone waits for nothing.
func (s *scan) stop(h *hold) {
	g := s.group(h.in.group)
	switch {
	case h.reason == PolicyPacer || h.reason == PolicyClaim || h.never():
	case h.running:
		g.keptPods++
		for r, amount := range h.in.asks {
			g.kept[r] += amount
		}
		if h.resource >= 0 {
			g.kept[h.resource] = closedFor
		}
	case h.resource >= 0:
		g.closed[h.resource] = closedFor
	}
}
