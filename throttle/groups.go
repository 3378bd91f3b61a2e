package throttle

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// GroupKey names one group of one policy: the pods that share counters.
type GroupKey struct {
	// Policy is the policy's name.
	Policy string
	// Group is the value by which the policy groups its pods; empty where it does not.
	Group string
}

// Amounts are amounts of resources by name, in thousandths of the resource's unit: "cpu":
// 200 is 200m, "memory": 1000 is one byte. nil: none. A negative amount counts as zero,
// one above 1<<54 as that. The limiter keeps what it is given: it must not be changed
// afterwards.
type Amounts map[string]int64

// Membership is the part that a pod has in one group.
type Membership struct {
	Key GroupKey
	// Requests are what the pod counts for beside itself.
	Requests Amounts
	// Bypass: the group never holds the pod, which counts in it all the same.
	Bypass bool
}

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

// PodGroups says which groups a pod is in and what it counts for in them.
type PodGroups struct {
	UID    string
	Groups []Membership
	// Running: the pod was admitted and has not finished, whether it has a ticket or not.
	// Ready: its containers are. False says nothing of a pod that the limiter admitted.
	Running, Ready bool
}

// pod is what a pod counts for, in which groups. It is there while the pod waits, starts
// or runs, and is in any group.
type pod struct {
	uid            string
	in             []podInGroup // in the order of their keys
	ticket         *Ticket      // Waiting or Starting; nil: it has none
	running, ready bool
	stuckSince     time.Time // when its start ended Stuck; zero: it did not
}

// podInGroup is the part of a pod in one group.
type podInGroup struct {
	group    *group
	requests Amounts
	asks     []int64 // by the resources of the group's limits
	bypass   bool
}

// SetPolicies replaces the limits of all policies, by the policy's name, and the groups of
// the pods that are given, in one step: nobody is admitted by a part of it. A policy that
// is absent bounds nothing. The limiter keeps what it is given: it must not be changed
// afterwards.
func (l *Limiter) SetPolicies(now time.Time, limits map[string]GroupLimits, pods ...PodGroups) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.changedLocked()
	now = l.clockLocked(now)
	l.policies = make(map[string]*groupLimits, len(limits))
	for name, given := range limits {
		l.policies[name] = newGroupLimits(given)
	}
	for _, g := range l.groups {
		g.limits = l.limitsOfLocked(g.key)
	}
	for _, p := range l.pods {
		p.weigh()
	}
	for _, pod := range pods {
		l.setGroupsLocked(pod)
	}
	l.counted = false
	l.admitLocked(now)
}

// SetGroups says which groups a pod is in, and replaces those it had. It keeps its place
// in the queue. A pod that runs counts once, however often it starts anew, and no bound of
// Running holds it. Nothing is kept of one that neither runs nor has a ticket.
func (l *Limiter) SetGroups(now time.Time, pod PodGroups) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.changedLocked()
	now = l.clockLocked(now)
	l.setGroupsLocked(pod)
	l.admitLocked(now)
}

// Finished says that a pod runs no longer and will not: it succeeded, failed for good or
// is gone. Until then it counts among those that run from its admission on.
func (l *Limiter) Finished(now time.Time, uid string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now = l.clockLocked(now)
	p := l.pods[uid]
	if p == nil || !p.running {
		return
	}
	defer l.changedLocked()
	p.running, p.ready, p.stuckSince = false, false, time.Time{}
	l.keepPodLocked(p)
	l.admitLocked(now)
}

// SetClaims says how many pods of the group may start at a time, where its policy has
// GroupLimits.Claims, now or later. Below zero: any number, for nobody can say. The group
// is remembered, without pods too, until it is said to have none.
func (l *Limiter) SetClaims(now time.Time, key GroupKey, starts int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now = l.clockLocked(now)
	starts = max(-1, starts)
	g := l.groups[key]
	if g == nil && starts == 0 {
		return
	}
	if g == nil {
		g = l.groupLocked(key)
	}
	if g.claims == starts {
		return
	}
	defer l.changedLocked()
	g.claims = starts
	l.counted = false
	l.admitLocked(now)
}

// setGroupsLocked is SetGroups without its consequences.
func (l *Limiter) setGroupsLocked(given PodGroups) {
	p := l.pods[given.UID]
	if p == nil {
		p = &pod{uid: given.UID}
		if t := l.tickets[given.UID]; t != nil && !t.hasEnded() {
			p.ticket, t.pod = t, p
			p.running = t.state == Starting
		}
		l.pods[given.UID] = p
	}
	if given.Running {
		p.running, p.ready = true, given.Ready
		if given.Ready {
			p.stuckSince = time.Time{}
		}
	}
	p.enter(l, given.Groups)
	l.keepPodLocked(p)
}

// enter puts the pod into its groups. Of two parts in one group, the first counts.
func (p *pod) enter(l *Limiter, groups []Membership) {
	p.in = make([]podInGroup, 0, len(groups))
	for _, in := range groups {
		p.in = append(p.in, podInGroup{group: l.groupLocked(in.Key), requests: in.Requests, bypass: in.Bypass})
	}
	slices.SortStableFunc(p.in, func(a, b podInGroup) int { return a.group.key.compare(b.group.key) })
	p.in = slices.CompactFunc(p.in, func(a, b podInGroup) bool { return a.group == b.group })
	p.weigh()
}

// weigh takes over what the limits of its groups bound.
func (p *pod) weigh() {
	for i := range p.in {
		in := &p.in[i]
		resources := in.group.limits.resources
		in.asks = make([]int64, len(resources))
		for r, name := range resources {
			in.asks[r] = clamp(in.requests[name])
		}
	}
}

// keepPodLocked forgets a pod that counts for nothing.
func (l *Limiter) keepPodLocked(p *pod) {
	l.counted = false
	if len(p.in) > 0 && (p.ticket != nil || p.running) {
		return
	}
	if p.ticket != nil {
		p.ticket.pod = nil
	}
	delete(l.pods, p.uid)
}

// joinGroupsLocked gives a new ticket its groups.
func (l *Limiter) joinGroupsLocked(t *Ticket, groups []Membership) {
	p := l.pods[t.uid]
	if p == nil && len(groups) == 0 {
		return
	}
	if p == nil {
		p = &pod{uid: t.uid}
		l.pods[t.uid] = p
	}
	t.pod, p.ticket = p, t
	if groups != nil {
		p.enter(l, groups)
	}
	l.keepPodLocked(p)
}

func (l *Limiter) groupLocked(key GroupKey) *group {
	g := l.groups[key]
	if g == nil {
		g = &group{key: key, limits: l.limitsOfLocked(key)}
		l.groups[key] = g
	}
	return g
}

func (l *Limiter) limitsOfLocked(key GroupKey) *groupLimits {
	if of := l.policies[key.Policy]; of != nil {
		return of
	}
	return noLimits
}

func (k GroupKey) compare(other GroupKey) int {
	return cmp.Or(cmp.Compare(k.Policy, other.Policy), cmp.Compare(k.Group, other.Group))
}

// mostAmount is the greatest amount that counts: the sum of 500 such is still a number.
const mostAmount = 1 << 54

func clamp(amount int64) int64 { return min(max(amount, 0), mostAmount) }

// groupLimits are the GroupLimits of a policy as they are asked.
type groupLimits struct {
	given             GroupLimits
	resources         []string // that are bounded, sorted
	starting, running bounds
}

// bounds are a Bound; below zero: any number.
type bounds struct {
	pods     int64
	requests []int64 // by groupLimits.resources
}

// noLimits are those of a policy that is not there.
var noLimits = newGroupLimits(GroupLimits{})

func newGroupLimits(given GroupLimits) *groupLimits {
	named := maps.Clone(given.Starting.Requests)
	if named == nil {
		named = Amounts{}
	}
	maps.Copy(named, given.Running.Requests)
	g := &groupLimits{given: given, resources: slices.Sorted(maps.Keys(named))}
	g.starting, g.running = g.boundsOf(given.Starting), g.boundsOf(given.Running)
	return g
}

func (g *groupLimits) boundsOf(b Bound) bounds {
	bs := bounds{pods: -1, requests: make([]int64, len(g.resources))}
	if b.Pods != nil {
		bs.pods = max(0, *b.Pods)
	}
	for r, name := range g.resources {
		bs.requests[r] = -1
		if most, bounded := b.Requests[name]; bounded {
			bs.requests[r] = max(0, most)
		}
	}
	return bs
}
