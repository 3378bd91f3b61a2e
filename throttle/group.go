package throttle

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// group is what is counted of the pods that share the bounds of a policy. It is there while
// any pod is in it, or claims were given to it.
type group struct {
	key    GroupKey
	limits GroupLimits
	bounds []bound
	claims int // below zero: any number
	counts
	behind int // of one scan: so many are held by a bound of it
}

// counts are recounted from all pods after anything of one has changed.
type counts struct {
	pods, waiting, running, ready int
	since                         []time.Time // those that start do
}

// bound is one thing that a policy bounds in a group. Amounts are floating point in it: no sum
// wraps, and up to 8 TiB of memory, in thousandths of a byte, are exact.
type bound struct {
	group      *group
	reason     reasons.Reason // PolicyRunning, PolicyClaim, PolicyStarting or PolicyPacer
	resource   string         // empty: pods
	most, used float64
	usedBefore float64   // as it was counted the last time
	moving     int       // of those that use it, so many make progress
	stalled    time.Time // the latest of the others since
	loan       loan
	// Of one scan: how much it allows, and keeps for those before; closed: nobody behind gets
	// any of it.
	allows, kept float64
	closed       bool
}

// anyNumber is what a bound allows that bounds nothing.
var anyNumber = math.Inf(1)

// pod is what is known of a pod that has a ticket, or runs in a group.
type pod struct {
	uid    string
	in     []member // in the order of their keys; none, where it neither waits nor runs
	asks   []ask    // by rank
	ticket *Ticket  // the latest; nil: none is remembered
	// running: it was admitted and has not finished; ready: its containers are. See PodGroups.
	running, ready bool
}

// member is the part of a pod in one group.
type member struct {
	Membership
	group *group
}

// ask is what a pod asks for of one bound; more than zero.
type ask struct {
	pod    *pod
	bound  *bound
	amount float64
	bypass bool
}

// groups are the groups of policies and the pods, in groups or not. Anything that changes a
// pod has all counted anew by the next scan.
type groups struct {
	policies map[string]GroupLimits
	pods     map[string]*pod // by UID
	all      []*group        // by key
	counted  bool            // no pod has changed since the last count
}

// setPolicies replaces the limits of all policies.
func (s *groups) setPolicies(limits map[string]GroupLimits) {
	s.policies, s.counted = limits, false
	for _, g := range s.all {
		if now := limits[g.key.Policy]; !reflect.DeepEqual(g.limits, now) { // else its loans stay
			g.follow(now)
		}
	}
	for _, p := range s.pods {
		p.setAsks()
	}
}

// pod gives the pod, which is known from now on.
func (s *groups) pod(uid string) *pod {
	p := s.pods[uid]
	if p == nil {
		p = &pod{uid: uid}
		s.pods[uid] = p
	}
	return p
}

// ticket gives the latest ticket of a pod; nil: none is remembered.
func (s *groups) ticket(uid string) *Ticket {
	if p := s.pods[uid]; p != nil {
		return p.ticket
	}
	return nil
}

// set puts a pod into its groups.
func (s *groups) set(given PodGroups) {
	p := s.pod(given.UID)
	s.enter(p, given.Groups)
	if given.Running {
		p.running, p.ready = true, given.Ready
	}
	s.changed(p)
}

// enter puts a pod into groups, instead of those it is in.
func (s *groups) enter(p *pod, in []Membership) {
	s.counted, p.in = false, p.in[:0]
	for _, m := range in {
		p.in = append(p.in, member{m, s.group(m.Key)})
	}
	slices.SortStableFunc(p.in, func(a, b member) int { return a.Key.compare(b.Key) })
	p.in = slices.CompactFunc(p.in, func(a, b member) bool { return a.group == b.group })
	p.setAsks()
}

// changed says that anything of a pod has changed. One that neither waits nor runs is in no
// group any more.
func (s *groups) changed(p *pod) {
	s.counted = s.counted && len(p.in) == 0
	if !p.running && !p.is(Waiting) && !p.is(Starting) {
		p.in, p.asks = nil, nil
	}
	if p.ticket == nil && len(p.in) == 0 {
		delete(s.pods, p.uid)
	}
}

// group gives the group of that key, which is there until a count finds nothing in it.
func (s *groups) group(key GroupKey) *group {
	i, found := slices.BinarySearchFunc(s.all, key, func(g *group, key GroupKey) int { return g.key.compare(key) })
	if !found {
		g := &group{key: key}
		g.follow(s.policies[key.Policy])
		s.all = slices.Insert(s.all, i, g)
	}
	return s.all[i]
}

// follow makes the group follow a policy.
func (g *group) follow(limits GroupLimits) {
	g.limits, g.bounds = limits, nil
	add := func(reason reasons.Reason, resource string, most int64) {
		g.bounds = append(g.bounds, bound{group: g, reason: reason, resource: resource, most: max(0, float64(most))})
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
	if limits.Claims {
		add(reasons.PolicyClaim, "", 0)
	}
	addAll(reasons.PolicyStarting, limits.Starting)
	if limits.Pacer.MaxStagger > 0 {
		add(reasons.PolicyPacer, "", 0)
	}
}

// setAsks finds out what the pod asks for of the bounds of its groups.
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

// rank is the order in which a pod asks: of the bounds of Running first, and of those first
// for what it can never get: then it keeps nobody from anything else.
func (a ask) rank() (n int) {
	if a.bound.reason != reasons.PolicyRunning {
		n = 2
	}
	return n + one(!a.neverFits())
}

// count counts anew what all groups hold, if anything has changed, and forgets groups that
// count for nothing.
func (s *groups) count() {
	if s.counted {
		return
	}
	s.counted = true
	for _, g := range s.all {
		g.counts = counts{since: g.since[:0]}
		for i := range g.bounds {
			b := &g.bounds[i]
			b.usedBefore, b.used, b.moving, b.stalled = b.used, 0, 0, time.Time{}
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
	stalled := p.stalled()
	for i := range p.asks {
		a := &p.asks[i]
		counts := p.is(Starting)
		switch a.bound.reason {
		case reasons.PolicyRunning:
			counts = p.running
		case reasons.PolicyPacer:
			counts = p.running && !p.ready
		}
		if counts {
			a.bound.used += a.amount
			a.bound.moving += one(stalled.IsZero())
			a.bound.stalled = later(a.bound.stalled, stalled)
		}
	}
	for i := range p.in {
		g := p.in[i].group
		g.pods++
		g.waiting += one(p.is(Waiting))
		g.running += one(p.running)
		g.ready += one(p.running && p.ready)
		if p.is(Starting) {
			g.since = append(g.since, p.ticket.admitted)
		}
	}
}

// is tells whether the pod's latest ticket is in a state.
func (p *pod) is(state State) bool { return p.ticket != nil && p.ticket.state == state }

// stalled gives since when the pod makes no progress; zero: it does.
func (p *pod) stalled() time.Time {
	switch t := p.ticket; {
	case p.is(Starting):
		return t.stalled
	case t != nil && t.reason == reasons.Stuck:
		return t.ended
	default:
		return time.Time{}
	}
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

// recounted follows a count of the pods: pacers and claims may allow something else, and where
// less is used than before, what is lent and not used is taken back.
func (b *bound) recounted() {
	most, bounded := b.group.claims, b.group.claims >= 0
	switch b.reason {
	case reasons.PolicyPacer:
		most, bounded = b.group.limits.Pacer.Allows(b.group.ready)
		fallthrough
	case reasons.PolicyClaim:
		if b.most = float64(most); !bounded {
			b.most = anyNumber
		}
	}
	if b.used < b.usedBefore {
		b.repay()
	}
}
