package throttle

import (
	"maps"
	"math"
	"slices"
)

// GroupLimits bound the pods of each group of a policy. The zero value bounds nothing.
type GroupLimits struct {
	// Starting bounds the pods of the group that start, Running those that were admitted
	// and have not finished. No deadline and no loan passes a bound of Running; both may
	// pass one of Starting.
	Starting, Running Bound
	// Pacer bounds how many start beside those that are ready.
	Pacer Pacer
	// Claims: no more pods of the group start at a time than [Limiter.SetClaims] allows;
	// none before it was called for the group. A deadline may pass it, no loan does.
	Claims bool
}

// Bound bounds pods and what they request. The zero value does not.
type Bound struct {
	// Pods is how many there may be. nil: any number; zero: none.
	Pods *int64
	// Requests is how much of each resource they may request together. One that is absent
	// is not bounded, and no bound on a resource holds a pod that requests nothing of it.
	Requests Amounts
}

// Pacer bounds how many pods of a group start, by how many of it are ready, with the
// meaning that straggler's pacers have (github.com/technicianted/straggler, pkg/pacer).
// A pod starts here from its admission until it is ready or has finished; one
// that is no longer ready starts again. The zero value bounds nothing.
type Pacer struct {
	// MaxStagger is how many have to be ready for the pacer to bound nothing any more.
	MaxStagger int
	// Step above zero makes a linear pacer: as many start as are missing to its next
	// multiple.
	Step int
	// An exponential pacer starts MinInitial while none is ready, then Multiplier for each
	// that is; the product is rounded up. At least one starts.
	MinInitial int
	Multiplier float64
}

// Allows gives how many may start at a time beside so many that are ready; false: any
// number.
func (p Pacer) Allows(ready int) (starting int, bounded bool) {
	switch {
	case ready >= p.MaxStagger:
		return 0, false
	case p.Step > 0:
		return p.Step - ready%p.Step, true
	case ready == 0:
		return max(1, p.MinInitial), true
	default:
		// 100 times 0.55 is a little more than 55 in floating point.
		exact := float64(ready) * p.Multiplier * (1 - 1e-12)
		return max(1, int(min(math.Ceil(exact), math.MaxInt32))), true
	}
}

const (
	// mostAmount is the greatest amount that counts: the sum of 500 such is still a number.
	mostAmount = 1 << 54
	// anyNumber is what a bound allows that bounds nothing.
	anyNumber = math.MaxInt64
)

func clamp(amount int64) int64 { return min(max(amount, 0), mostAmount) }

// policy is the limits of a policy as they are asked.
type policy struct {
	limits GroupLimits
	bounds []bound
}

// bound is one thing that a policy bounds in each of its groups.
type bound struct {
	reason   Reason // PolicyRunning, PolicyClaim, PolicyStarting or PolicyPacer
	resource string // empty: pods
	most     int64  // of PolicyClaim and PolicyPacer each group has its own
}

// noPolicy is one that is not there.
var noPolicy = newPolicy(GroupLimits{})

func newPolicy(limits GroupLimits) *policy {
	p := &policy{limits: limits}
	p.bound(PolicyRunning, limits.Running)
	if limits.Claims {
		p.bounds = append(p.bounds, bound{reason: PolicyClaim})
	}
	p.bound(PolicyStarting, limits.Starting)
	if limits.Pacer.MaxStagger > 0 {
		p.bounds = append(p.bounds, bound{reason: PolicyPacer})
	}
	return p
}

func (p *policy) bound(reason Reason, b Bound) {
	if b.Pods != nil {
		p.bounds = append(p.bounds, bound{reason: reason, most: max(0, *b.Pods)})
	}
	for _, resource := range slices.Sorted(maps.Keys(b.Requests)) {
		p.bounds = append(p.bounds, bound{reason: reason, resource: resource, most: max(0, b.Requests[resource])})
	}
}

// scan is one way through the queue. What it keeps and takes of a group is reset when it
// comes to the group.
type scan struct {
	number uint64
	claims *group // whose claims do not hold; nil: all do
}

func (l *Limiter) scanLocked() scan {
	l.scans++
	return scan{number: l.scans}
}

// group gives the group as this scan has left it.
func (s *scan) group(g *group) *group {
	if g.scan != s.number {
		g.scan, g.taken, g.behind = s.number, 0, 0
		for i := range g.uses {
			g.uses[i].kept, g.uses[i].closed = 0, false
		}
	}
	return g
}

// hold is a bound of a group that holds a pod. The zero value holds nothing.
type hold struct {
	in    *podInGroup
	bound int   // of the policy
	used  int64 // of it, with what the scan keeps for those before
}

func (h hold) none() bool { return h.in == nil }

func (h hold) reason() Reason { return h.in.group.policy.bounds[h.bound].reason }

func (h hold) byRunning() bool { return !h.none() && h.reason() == PolicyRunning }

// holds gives what holds the ticket: a bound of Running before any other.
func (s *scan) holds(t *Ticket) hold {
	if h := s.runningHolds(t); !h.none() {
		return h
	}
	return s.startingHolds(t)
}

func (s *scan) runningHolds(t *Ticket) hold  { return s.find(t, true) }
func (s *scan) startingHolds(t *Ticket) hold { return s.find(t, false) }

func (s *scan) find(t *Ticket, running bool) hold {
	if t.pod == nil {
		return hold{}
	}
	for i := range t.pod.in {
		in := &t.pod.in[i]
		if in.bypass {
			continue
		}
		for b := range in.asks {
			if (in.group.policy.bounds[b].reason == PolicyRunning) == running && s.exceeds(t.pod, in, b) {
				u := &in.group.uses[b]
				return hold{in, b, u.used + u.kept}
			}
		}
	}
	return hold{}
}

// exceeds tells whether the pod would exceed a bound, beside what is in use and what this
// scan keeps of it.
func (s *scan) exceeds(p *pod, in *podInGroup, b int) bool {
	g, asks := s.group(in.group), in.asks[b]
	u := &g.uses[b]
	if asks == 0 || (!u.closed && u.used+u.kept <= u.most-asks) {
		return false
	}
	switch g.policy.bounds[b].reason {
	case PolicyRunning:
		return !p.running // one that runs counts already, and would be held by itself
	case PolicyPacer:
		return !p.running && g.loan.left <= g.taken
	case PolicyStarting:
		return g.loan.left <= g.taken
	default:
		return s.claims != g
	}
}

// never tells whether the pod alone exceeds the bound.
func (h hold) never() bool {
	r := h.reason()
	return (r == PolicyRunning || r == PolicyStarting) && h.in.exceedsAlone(r) >= 0
}

// exceedsAlone gives which of the bounds for a reason the pod alone exceeds; below zero:
// none.
func (in *podInGroup) exceedsAlone(r Reason) int {
	for b, asks := range in.asks {
		if bound := &in.group.policy.bounds[b]; bound.reason == r && asks > bound.most {
			return b
		}
	}
	return -1
}

// held says it to the caller of the limiter.
func (h hold) held() Held {
	reason := h.reason()
	if alone := h.in.exceedsAlone(reason); reason == PolicyRunning && alone >= 0 {
		reason, h.bound, h.used = Unadmittable, alone, h.in.group.uses[alone].used
	}
	g := h.in.group
	b := g.policy.bounds[h.bound]
	held := Held{Reason: reason, Policy: g.key, Measured: float64(h.used), Threshold: float64(g.uses[h.bound].most)}
	if b.resource != "" { // in thousandths
		held.Resource, held.Asks = b.resource, float64(h.in.asks[h.bound])/1000
		held.Measured /= 1000
		held.Threshold /= 1000
	}
	return held
}

// keep reserves of the bounds of Running what the ticket asks for.
func (s *scan) keep(t *Ticket) {
	if t.pod != nil && !t.pod.running {
		for i := range t.pod.in {
			s.keepRunning(&t.pod.in[i])
		}
	}
}

func (s *scan) keepRunning(in *podInGroup) {
	g := s.group(in.group)
	for b, asks := range in.asks {
		if g.policy.bounds[b].reason == PolicyRunning {
			g.uses[b].kept += asks
		}
	}
}

// take counts the ticket as started.
func (s *scan) take(t *Ticket) {
	if t.pod == nil {
		return
	}
	for i := range t.pod.in {
		in := &t.pod.in[i]
		g := s.group(in.group)
		g.taken++
		for b, asks := range in.asks {
			switch g.policy.bounds[b].reason {
			case PolicyRunning, PolicyPacer: // one that runs counts already
				if t.pod.running {
					continue
				}
			}
			g.uses[b].kept += asks
		}
	}
}

// stop lets nobody behind a pod that is held have what it waits for: a bound that many
// small pods keep full would hold a large one for ever. In the same group it keeps what
// else of Running the pod asks for. A bound that it exceeds alone waits for nothing.
func (s *scan) stop(h hold) {
	if h.never() {
		return
	}
	if h.byRunning() {
		s.keepRunning(h.in)
	}
	s.group(h.in.group).uses[h.bound].closed = true
}
