package throttle

import (
	"cmp"
	"maps"
	"math"
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
	loan   loan
	counts

	// Of one scan.
	taken  int // so many it takes as started
	behind int // so many it has found held
}

// counts are recounted from all pods after anything of one has changed.
type counts struct {
	pods, waiting, starting, running, ready int
	// Without progress: of those that start, and of those that run and are not ready, the
	// latest of them since.
	stalledStarting, stalledPaced int
	stalledSince                  time.Time
	since                         []time.Time // those that start do
}

// bound is one thing that a policy bounds in a group.
type bound struct {
	group      *group
	reason     reasons.Reason // PolicyRunning, PolicyClaim, PolicyStarting or PolicyPacer
	resource   string         // empty: pods
	most, used int64
	// Of one scan: how much it allows, and keeps for those before; closed: nobody behind gets
	// any of it.
	allows, kept int64
	closed       bool
}

// anyNumber is what a bound allows that bounds nothing.
const anyNumber = math.MaxInt64

// pod is what is known of a pod in groups, while it waits, starts or runs.
type pod struct {
	uid            string
	in             []member  // in the order of their keys
	asks           []ask     // by rank
	ticket         *Ticket   // Waiting or Starting; nil: it has none
	running, ready bool      // as PodGroups has it
	stuckSince     time.Time // when its start ended Stuck; zero: it did not
}

// member is the part of a pod in one group.
type member struct {
	group    *group
	requests Amounts
	bypass   bool
}

// ask is what a pod asks for of one bound; more than zero.
type ask struct {
	pod    *pod
	bound  *bound
	amount int64
	bypass bool
}

// groups are the groups of policies and the pods in them. Anything that changes a pod has
// them counted anew by the next scan.
type groups struct {
	policies map[string]GroupLimits
	pods     []*pod   // in any group, by UID
	all      []*group // by key
	counted  bool     // as their pods are now
}

// setPolicies replaces the limits of all policies.
func (s *groups) setPolicies(limits map[string]GroupLimits) {
	s.policies, s.counted = limits, false
	for _, g := range s.all {
		g.follow(limits[g.key.Policy])
	}
	for _, p := range s.pods {
		p.ask()
	}
}

// set puts a pod into its groups. t is its ticket, if it has one that has not ended.
func (s *groups) set(given PodGroups, t *Ticket) {
	p := s.enter(given.UID, given.Groups, t)
	if given.Running {
		p.running, p.ready = true, given.Ready
	}
	if given.Running && given.Ready {
		p.stuckSince = time.Time{}
	}
}

// enter puts a pod into groups, instead of those it is in.
func (s *groups) enter(uid string, in []Membership, t *Ticket) *pod {
	p := s.pod(uid)
	if p == nil {
		i, _ := slices.BinarySearchFunc(s.pods, uid, (*pod).compare)
		p = &pod{uid: uid}
		s.pods = slices.Insert(s.pods, i, p)
	}
	p.in = p.in[:0]
	for _, m := range in {
		p.in = append(p.in, member{group: s.group(m.Key), requests: m.Requests, bypass: m.Bypass})
	}
	slices.SortStableFunc(p.in, func(a, b member) int { return a.group.key.compare(b.group.key) })
	p.in = slices.CompactFunc(p.in, func(a, b member) bool { return a.group == b.group })
	p.ask()
	s.link(p, t)
	return p
}

// link links the pod with its ticket, if there is one that has not ended.
func (s *groups) link(p *pod, t *Ticket) {
	s.counted = false
	if t != nil {
		p.ticket, t.pod = t, p
		p.running = p.running || t.state == Starting
	}
}

// started counts a pod that was admitted.
func (s *groups) started(p *pod) {
	if p == nil {
		return
	}
	p.running, p.ready, p.stuckSince = true, false, time.Time{}
	p.spendLoans()
	s.counted = false
}

// leave ends what a ticket that has ended counts for. A pod that was admitted counts among
// those that run until it has finished.
func (s *groups) leave(t *Ticket, started bool) {
	p := t.pod
	if p == nil {
		return
	}
	if started {
		p.ready = p.ready || tellsReady(t.reason)
		if t.reason == reasons.Stuck {
			p.stuckSince = t.ended
		}
		p.repay()
	}
	p.ticket, t.pod = nil, nil
	s.counted = false
}

// finish tells whether the pod did run, and has it run no longer.
func (s *groups) finish(uid string) bool {
	p := s.pod(uid)
	if p == nil || !p.running {
		return false
	}
	p.running, p.ready, p.stuckSince = false, false, time.Time{}
	s.counted = false
	return true
}

// setClaims tells whether the group had others.
func (s *groups) setClaims(key GroupKey, claims int) bool {
	g := s.group(key)
	had := g.claims
	g.claims, s.counted = claims, false
	return had != claims
}

func (p *pod) compare(uid string) int { return cmp.Compare(p.uid, uid) }

// pod gives the pod; nil: it is in no group.
func (s *groups) pod(uid string) *pod {
	s.count()
	if i, found := slices.BinarySearchFunc(s.pods, uid, (*pod).compare); found {
		return s.pods[i]
	}
	return nil
}

func (g *group) compare(key GroupKey) int { return g.key.compare(key) }

func (s *groups) group(key GroupKey) *group {
	i, found := slices.BinarySearchFunc(s.all, key, (*group).compare)
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
		g.bounds = append(g.bounds, bound{group: g, reason: reason, resource: resource, most: max(0, most)})
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

// ask finds out what the pod asks for of the bounds of its groups.
func (p *pod) ask() {
	p.asks = nil
	for _, in := range p.in {
		for b := range in.group.bounds {
			amount := int64(1)
			if resource := in.group.bounds[b].resource; resource != "" {
				amount = clamp(in.requests[resource])
			}
			if amount > 0 {
				p.asks = append(p.asks, ask{pod: p, bound: &in.group.bounds[b], amount: amount, bypass: in.bypass})
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
	return n + one(!a.never())
}

// count counts anew what all groups hold, if anything has changed, and forgets pods and
// groups that count for nothing.
func (s *groups) count() {
	if s.counted {
		return
	}
	s.counted = true
	s.pods = slices.DeleteFunc(s.pods, func(p *pod) bool {
		over := len(p.in) == 0 || (p.ticket == nil && !p.running)
		if over && p.ticket != nil {
			p.ticket.pod = nil
		}
		return over
	})
	for _, g := range s.all {
		g.counts = counts{since: g.since[:0]}
		for b := range g.bounds {
			g.bounds[b].used = 0
		}
	}
	for _, p := range s.pods {
		p.count()
	}
	s.all = slices.DeleteFunc(s.all, func(g *group) bool { return g.pods == 0 && g.claims == 0 })
	for _, g := range s.all {
		g.setMost()
	}
}

// count counts the pod in its groups.
func (p *pod) count() {
	starting := p.starting()
	stalled := p.stuckSince
	if starting {
		stalled = p.ticket.stalled
	}
	paced := p.running && !p.ready
	for i := range p.asks {
		a := &p.asks[i]
		counts := starting
		switch a.bound.reason {
		case reasons.PolicyRunning:
			counts = p.running
		case reasons.PolicyPacer:
			counts = paced
		}
		if counts {
			plus(&a.bound.used, a.amount)
		}
	}
	for i := range p.in {
		g := p.in[i].group
		g.pods++
		g.waiting += one(p.ticket != nil && !starting)
		g.running += one(p.running)
		g.ready += one(p.running && p.ready)
		g.stalledStarting += one(starting && !stalled.IsZero())
		g.stalledPaced += one(paced && !stalled.IsZero())
		if paced {
			g.stalledSince = later(g.stalledSince, stalled)
		}
		if starting {
			g.starting++
			g.since = append(g.since, p.ticket.admitted)
		}
	}
}

func (p *pod) starting() bool { return p.ticket != nil && p.ticket.state == Starting }

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

// setMost sets what the bounds allow that follow something else than the policy alone.
func (g *group) setMost() {
	for b := range g.bounds {
		switch bound := &g.bounds[b]; bound.reason {
		case reasons.PolicyClaim:
			if bound.most = int64(g.claims); g.claims < 0 {
				bound.most = anyNumber
			}
		case reasons.PolicyPacer:
			starting, bounded := g.limits.Pacer.Allows(g.ready)
			if bound.most = int64(starting); !bounded {
				bound.most = anyNumber
			}
		}
	}
}
