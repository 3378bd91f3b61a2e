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
	bound  *bound
	amount int64
	bypass bool
}

// SetPolicies replaces the limits of all policies, by the policy's name, and the groups of
// the pods that are given, in one step: nobody is admitted by a part of it. A policy that
// is absent bounds nothing. The limiter keeps what it is given: it must not be changed
// afterwards.
func (l *Limiter) SetPolicies(now time.Time, limits map[string]GroupLimits, pods ...PodGroups) {
	now = l.lock(now)
	defer l.unlock()
	l.policies = maps.Clone(limits)
	for _, g := range l.groups {
		g.follow(l.policies[g.key.Policy])
	}
	for _, p := range l.pods {
		p.ask()
	}
	l.counted = false
	for _, pod := range pods {
		l.setGroupsLocked(pod)
	}
	l.admitLocked(now)
}

// SetGroups says which groups a pod is in, and replaces those it had. It keeps its place
// in the queue. A pod that runs counts once, however often it starts anew, and no bound of
// Running holds it. Nothing is kept of one that neither runs nor has a ticket.
func (l *Limiter) SetGroups(now time.Time, pod PodGroups) {
	now = l.lock(now)
	defer l.unlock()
	l.setGroupsLocked(pod)
	l.admitLocked(now)
}

// Finished says that a pod runs no longer and will not: it succeeded, failed for good or
// is gone. Until then it counts among those that run from its admission on.
func (l *Limiter) Finished(now time.Time, uid string) {
	now = l.lock(now)
	defer l.mu.Unlock()
	p := l.podLocked(uid)
	if p == nil || !p.running {
		return
	}
	defer l.changedLocked()
	p.running, p.ready, p.stuckSince = false, false, time.Time{}
	l.counted = false
	l.admitLocked(now)
}

// SetClaims says how many pods of the group may start at a time, where its policy has
// GroupLimits.Claims, now or later. Below zero: any number, for nobody can say. The group
// is remembered, without pods too, until it is said to have none.
func (l *Limiter) SetClaims(now time.Time, key GroupKey, starts int) {
	now = l.lock(now)
	defer l.mu.Unlock()
	g := l.groupLocked(key)
	if starts = max(-1, starts); g.claims != starts {
		defer l.changedLocked()
		g.claims = starts
	}
	l.counted = false
	l.admitLocked(now)
}

// setGroupsLocked is SetGroups without its consequences.
func (l *Limiter) setGroupsLocked(given PodGroups) {
	p := l.enterLocked(given.UID, given.Groups)
	if given.Running {
		p.running, p.ready = true, given.Ready
	}
	if given.Running && given.Ready {
		p.stuckSince = time.Time{}
	}
}

// enterLocked puts a pod into groups, instead of those it is in.
func (l *Limiter) enterLocked(uid string, groups []Membership) *pod {
	p := l.podLocked(uid)
	if p == nil {
		i, _ := slices.BinarySearchFunc(l.pods, uid, (*pod).compare)
		p = &pod{uid: uid}
		l.pods = slices.Insert(l.pods, i, p)
	}
	p.in = p.in[:0]
	for _, in := range groups {
		p.in = append(p.in, member{group: l.groupLocked(in.Key), requests: in.Requests, bypass: in.Bypass})
	}
	slices.SortStableFunc(p.in, func(a, b member) int { return a.group.key.compare(b.group.key) })
	p.in = slices.CompactFunc(p.in, func(a, b member) bool { return a.group == b.group })
	p.ask()
	l.linkLocked(p)
	return p
}

// linkLocked links the pod with its ticket, if that has not ended.
func (l *Limiter) linkLocked(p *pod) {
	l.counted = false
	if t := l.tickets[p.uid]; t != nil && !t.hasEnded() {
		p.ticket, t.pod = t, p
		p.running = p.running || t.state == Starting
	}
}

func (p *pod) compare(uid string) int { return cmp.Compare(p.uid, uid) }

// podLocked gives the pod; nil: it is in no group.
func (l *Limiter) podLocked(uid string) *pod {
	l.countLocked()
	if i, found := slices.BinarySearchFunc(l.pods, uid, (*pod).compare); found {
		return l.pods[i]
	}
	return nil
}

func (g *group) compare(key GroupKey) int { return g.key.compare(key) }

func (l *Limiter) groupLocked(key GroupKey) *group {
	i, found := slices.BinarySearchFunc(l.groups, key, (*group).compare)
	if !found {
		g := &group{key: key}
		g.follow(l.policies[key.Policy])
		l.groups = slices.Insert(l.groups, i, g)
	}
	return l.groups[i]
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
				p.asks = append(p.asks, ask{bound: &in.group.bounds[b], amount: amount, bypass: in.bypass})
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

// countLocked counts anew what all groups hold, if anything has changed, and forgets pods
// and groups that count for nothing.
func (l *Limiter) countLocked() {
	if l.counted {
		return
	}
	l.counted = true
	l.pods = slices.DeleteFunc(l.pods, func(p *pod) bool {
		over := len(p.in) == 0 || (p.ticket == nil && !p.running)
		if over && p.ticket != nil {
			p.ticket.pod = nil
		}
		return over
	})
	for _, g := range l.groups {
		g.counts = counts{since: g.since[:0]}
		for b := range g.bounds {
			g.bounds[b].used = 0
		}
	}
	for _, p := range l.pods {
		p.count()
	}
	l.groups = slices.DeleteFunc(l.groups, func(g *group) bool { return g.pods == 0 && g.claims == 0 })
	for _, g := range l.groups {
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
