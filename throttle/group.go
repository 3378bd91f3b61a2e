package throttle

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Groups
//
// Each policy limits the pods of each of its groups ([GroupLimits]). A pod counts as starting
// from its admission until its slot ends, and as running until [Limiter.Finished]. A pod that
// is exempt, was adopted or bypasses a policy counts, but is not held. A pod asks for amounts
// of bounds, those of Running first. The first bound that is full holds it.
//
// A pod that alone exceeds a bound of Running is Unadmittable, and keeps nothing from others.
// A bound of Running may hold a pod for hours. So no overdue pod and no loan exceeds it, and the
// pod gets no reservation. [Limiter.SetClaims] limits the starts of a group to the part that
// this node holds of a bound on all nodes.

// group counts the pods that share the bounds of a policy. It exists while a pod is in it or it has
// claims.
type group struct {
	key    GroupKey
	limits GroupLimits
	bounds []bound
	claims int // the number of the last SetClaims; below zero if any number of pods may start
	counts
}

// counts are counted anew from all pods after a pod has changed.
type counts struct {
	pods, waiting, running, ready int
	starting                      []*Ticket // of the pods that start
}

// bound is a limit of a policy in one group: on pods or on a resource. Its amounts are floating
// point, so no sum wraps, and up to 8 TiB of memory, in thousandths of a byte, are exact.
type bound struct {
	group        *group
	reason       reasons.Reason // PolicyRunning, PolicyClaim, PolicyStarting or PolicyPacer
	resource     string         // empty if it limits pods
	limit, used  float64
	usedBefore   float64 // by the count before
	asking       int     // how many pods that wait or start ask for it, and for how much together
	asked        float64
	progressing  int       // how many of the pods that use it make progress
	stalledSince time.Time // when the last of the others stopped making progress
	loan         loan
	index        int // of its tally in a scan
}

// anyNumber is the limit of a bound that allows any number.
var anyNumber = math.Inf(1)

// pod is a pod that has a ticket, or runs.
type pod struct {
	uid            string
	in             []podInGroup // ordered by key; empty if the pod neither waits nor runs
	asks           []ask        // by rank
	ticket         *Ticket      // the latest; nil if none is remembered
	running, ready bool         // see PodGroups
}

// podInGroup is the membership of a pod in one group.
type podInGroup struct {
	Membership
	group *group
}

// ask is the amount, above zero, that a pod asks for of one bound.
type ask struct {
	pod    *pod
	bound  *bound
	amount float64
	bypass bool
}

// groups holds all pods, and the groups of policies. After a change of a pod, the next scan counts
// all groups anew.
type groups struct {
	policies map[string]GroupLimits
	pods     map[string]*pod // by UID
	all      []*group        // by key
	counted  bool            // the counts are up to date
}

// setPolicies replaces the limits of all policies.
func (s *groups) setPolicies(limits map[string]GroupLimits) {
	s.policies, s.counted = limits, false
	for _, g := range s.all {
		if now := limits[g.key.Policy]; !reflect.DeepEqual(g.limits, now) { // an unchanged group keeps its loans
			g.follow(now)
		}
	}
	for _, p := range s.pods {
		p.setAsks()
	}
}

// pod returns the pod, and makes it if there is none.
func (s *groups) pod(uid string) *pod {
	p := s.pods[uid]
	if p == nil {
		p = &pod{uid: uid}
		s.pods[uid] = p
	}
	return p
}

// ticket returns the latest ticket of the pod; nil if none is remembered.
func (s *groups) ticket(uid string) *Ticket {
	if p := s.pods[uid]; p != nil {
		return p.ticket
	}
	return nil
}

// setGroups replaces the groups of a pod, and notes whether it runs. It reports whether anything is new.
func (s *groups) setGroups(given PodGroups) bool {
	p := s.pods[given.UID]
	switch {
	case !given.Running && (p == nil || !p.counts()): // it is in no group
		return false
	case p == nil:
		p = s.pod(given.UID)
	case p.isIn(given.Groups) && (!given.Running || p.running && p.ready == given.Ready):
		return false
	}
	if given.Running {
		p.running, p.ready = true, given.Ready
	}
	s.setMemberships(p, given.Groups)
	s.changed(p)
	return true
}

// isIn reports whether the pod has these memberships, in any order.
func (p *pod) isIn(groups []Membership) bool {
	return len(p.in) == len(groups) && !slices.ContainsFunc(p.in, func(in podInGroup) bool {
		at := slices.IndexFunc(groups, func(m Membership) bool { return m.Key == in.Key })
		return at < 0 || groups[at].Bypass != in.Bypass || !maps.Equal(groups[at].Requests, in.Requests)
	})
}

// setMemberships replaces the groups of a pod. If two memberships are in one group, the first counts.
func (s *groups) setMemberships(p *pod, in []Membership) {
	s.counted, p.in = false, p.in[:0]
	for _, m := range in {
		p.in = append(p.in, podInGroup{m, s.group(m.Key)})
	}
	slices.SortStableFunc(p.in, func(a, b podInGroup) int { return a.Key.compare(b.Key) })
	p.in = slices.CompactFunc(p.in, func(a, b podInGroup) bool { return a.group == b.group })
	p.setAsks()
}

// changed notes that a pod has changed. A pod that neither waits, starts nor runs leaves its groups,
// and is forgotten if it has no ticket.
func (s *groups) changed(p *pod) {
	s.counted = s.counted && len(p.in) == 0
	if !p.counts() {
		p.in, p.asks = nil, nil
	}
	if p.ticket == nil && !p.running {
		delete(s.pods, p.uid)
	}
}

// group returns the group of a key, and makes it if there is none. The next count removes it if it is empty.
func (s *groups) group(key GroupKey) *group {
	i, found := slices.BinarySearchFunc(s.all, key, func(g *group, key GroupKey) int { return g.key.compare(key) })
	if !found {
		g := &group{key: key}
		g.follow(s.policies[key.Policy])
		s.all = slices.Insert(s.all, i, g)
	}
	return s.all[i]
}

// follow replaces the limits of the group.
func (g *group) follow(limits GroupLimits) {
	g.limits, g.bounds = limits, nil
	add := func(reason reasons.Reason, resource string, most int64) {
		g.bounds = append(g.bounds, bound{group: g, reason: reason, resource: resource, limit: max(0, float64(most))})
	}
	addAll := func(reason reasons.Reason, b Bound) {
		if b.Pods != nil {
			add(reason, "", *b.Pods)
		}
		for _, resource := range slices.Sorted(maps.Keys(b.Requests)) {
			add(reason, resource, b.Requests[resource])
		}
	}
	addAll(reasons.PolicyRunning, limits.Running)
	if limits.Claims != nil {
		add(reasons.PolicyClaim, "", 0)
	}
	addAll(reasons.PolicyStarting, limits.Starting)
	if limits.Pacer.MaxStagger > 0 {
		add(reasons.PolicyPacer, "", 0)
	}
}

// claimed returns the bound by the claims of a group that has GroupLimits.Claims.
func (g *group) claimed() *bound {
	return &g.bounds[slices.IndexFunc(g.bounds, func(b bound) bool { return b.reason == reasons.PolicyClaim })]
}

// setAsks sets what the pod asks for of the bounds of its groups.
func (p *pod) setAsks() {
	p.asks = nil
	for _, in := range p.in {
		for b := range in.group.bounds {
			amount := 1.0
			if resource := in.group.bounds[b].resource; resource != "" {
				amount = float64(in.Requests[resource])
			}
			if amount > 0 {
				p.asks = append(p.asks, ask{pod: p, bound: &in.group.bounds[b], amount: amount, bypass: in.Bypass})
			}
		}
	}
	slices.SortStableFunc(p.asks, func(a, b ask) int { return a.rank() - b.rank() })
}

// rank orders what a pod asks for: bounds of Running first, and among them first those that the pod
// can never fit. A pod that such a bound holds keeps other pods from nothing.
func (a ask) rank() (n int) {
	if a.bound.reason != reasons.PolicyRunning {
		n = 2
	}
	return n + oneIf(!a.neverFits())
}

// count counts all groups anew if a pod has changed, and removes groups without pods and claims.
func (s *groups) count() {
	if s.counted {
		return
	}
	s.counted = true
	for _, g := range s.all {
		g.counts = counts{starting: g.starting[:0]}
		for i := range g.bounds {
			b := &g.bounds[i]
			b.usedBefore, b.used, b.progressing, b.stalledSince = b.used, 0, 0, time.Time{}
			b.asking, b.asked = 0, 0
		}
	}
	for _, p := range s.pods {
		p.count()
	}
	s.all = slices.DeleteFunc(s.all, func(g *group) bool { return g.pods == 0 && g.claims == 0 })
	for _, g := range s.all {
		for i := range g.bounds {
			g.bounds[i].recounted()
		}
	}
}

// count counts the pod in its groups.
func (p *pod) count() {
	stalled := p.stalledSince()
	for i := range p.asks {
		a := &p.asks[i]
		if p.inState(Waiting) || p.inState(Starting) {
			a.bound.asking, a.bound.asked = a.bound.asking+1, a.bound.asked+a.amount
		}
		counts := p.inState(Starting)
		switch a.bound.reason {
		case reasons.PolicyRunning:
			counts = p.running
		case reasons.PolicyPacer:
			counts = p.running && !p.ready
		}
		if counts {
			a.bound.used += a.amount
			a.bound.progressing += oneIf(stalled.IsZero())
			a.bound.stalledSince = later(a.bound.stalledSince, stalled)
		}
	}
	for i := range p.in {
		g := p.in[i].group
		g.pods++
		g.waiting += oneIf(p.inState(Waiting))
		g.running += oneIf(p.running)
		g.ready += oneIf(p.running && p.ready)
		if p.inState(Starting) {
			g.starting = append(g.starting, p.ticket)
		}
	}
}

// counts reports whether the pod waits, starts or runs, so that it is in its groups.
func (p *pod) counts() bool { return p.running || p.inState(Waiting) || p.inState(Starting) }

// inState reports whether the pod's latest ticket is in a state.
func (p *pod) inState(state State) bool { return p.ticket != nil && p.ticket.state == state }

// stalledSince returns when the pod stopped making progress, or zero if it makes progress. A pod that ended Stuck makes
// none.
func (p *pod) stalledSince() time.Time {
	switch t := p.ticket; {
	case p.inState(Starting):
		return t.stalledSince
	case p.running && p.inState(Waiting): // as the app of a start that lapsed
		return t.preparation.delays(t.arrived)
	case t != nil && t.reason == reasons.Stuck:
		return t.ended
	default:
		return time.Time{}
	}
}

func oneIf(is bool) int {
	if is {
		return 1
	}
	return 0
}

// recounted updates the bound after a count. The limits of pacers and claims may have changed. If
// less is used than before, unused loans end.
func (b *bound) recounted() {
	most, limited := b.group.claims, b.group.claims >= 0
	switch b.reason {
	case reasons.PolicyPacer:
		most, limited = b.group.limits.Pacer.Allows(b.group.ready)
		fallthrough
	case reasons.PolicyClaim:
		if b.limit = float64(most); !limited {
			b.limit = anyNumber
		}
	}
	if b.used < b.usedBefore {
		b.repay()
	}
}
