package throttle

import (
	"cmp"
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
	counted        role      // as what it counts in its groups now
}

// podInGroup is the part of a pod in one group.
type podInGroup struct {
	group    *group
	requests Amounts
	asks     []int64 // by the bounds of the group's policy
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
	for _, p := range l.pods {
		p.count(role{})
	}
	l.policies = make(map[string]*policy, len(limits))
	for name, given := range limits {
		l.policies[name] = newPolicy(given)
	}
	for _, g := range l.groups {
		g.follow(l.policyLocked(g.key))
	}
	for _, p := range l.pods {
		p.weigh()
		p.count(p.role())
	}
	for _, pod := range pods {
		l.setGroupsLocked(pod)
	}
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
	l.countPodLocked(p)
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
	g := l.groupLocked(key)
	if g.claims != starts {
		defer l.changedLocked()
		g.claims = starts
		g.setMost()
		l.admitLocked(now)
	}
	l.dropIfEmptyLocked(g)
}

// setGroupsLocked is SetGroups without its consequences.
func (l *Limiter) setGroupsLocked(given PodGroups) {
	p := l.podLocked(given.UID)
	if given.Running {
		p.running, p.ready = true, given.Ready
		if given.Ready {
			p.stuckSince = time.Time{}
		}
	}
	l.enterLocked(p, given.Groups)
}

// podLocked gives the pod, with its ticket. Whoever asks counts it then, or drops it.
func (l *Limiter) podLocked(uid string) *pod {
	p := l.pods[uid]
	if p == nil {
		p = &pod{uid: uid}
		l.pods[uid] = p
	}
	if t := l.tickets[uid]; t != nil && !t.hasEnded() {
		p.ticket, t.pod = t, p
		p.running = p.running || t.state == Starting
	}
	return p
}

// enterLocked puts the pod into its groups, instead of those it is in. Of two parts in one
// group, the first counts.
func (l *Limiter) enterLocked(p *pod, groups []Membership) {
	l.leaveLocked(p)
	for _, in := range groups {
		p.in = append(p.in, podInGroup{group: l.groupLocked(in.Key), requests: in.Requests, bypass: in.Bypass})
	}
	slices.SortStableFunc(p.in, func(a, b podInGroup) int { return a.group.key.compare(b.group.key) })
	p.in = slices.CompactFunc(p.in, func(a, b podInGroup) bool { return a.group == b.group })
	for _, in := range p.in {
		in.group.pods++
	}
	p.weigh()
	l.countPodLocked(p)
}

// leaveLocked takes the pod out of its groups.
func (l *Limiter) leaveLocked(p *pod) {
	p.count(role{})
	for _, in := range p.in {
		in.group.pods--
		l.dropIfEmptyLocked(in.group)
	}
	p.in = nil
}

// weigh takes over what the policies of its groups bound.
func (p *pod) weigh() {
	for i := range p.in {
		in := &p.in[i]
		in.asks = make([]int64, len(in.group.policy.bounds))
		for b, bound := range in.group.policy.bounds {
			in.asks[b] = 1
			if bound.resource != "" {
				in.asks[b] = clamp(in.requests[bound.resource])
			}
		}
	}
}

// countPodLocked counts a pod anew after anything of it has changed, and forgets one that
// counts for nothing.
func (l *Limiter) countPodLocked(p *pod) {
	if len(p.in) > 0 && (p.ticket != nil || p.running) {
		p.count(p.role())
		return
	}
	l.leaveLocked(p)
	if p.ticket != nil {
		p.ticket.pod = nil
	}
	delete(l.pods, p.uid)
}

func (l *Limiter) groupLocked(key GroupKey) *group {
	g := l.groups[key]
	if g == nil {
		g = &group{key: key}
		g.follow(l.policyLocked(key))
		l.groups[key] = g
	}
	return g
}

func (l *Limiter) dropIfEmptyLocked(g *group) {
	if g.pods == 0 && g.claims == 0 {
		delete(l.groups, g.key)
	}
}

func (l *Limiter) policyLocked(key GroupKey) *policy {
	if p := l.policies[key.Policy]; p != nil {
		return p
	}
	return noPolicy
}

func (k GroupKey) compare(other GroupKey) int {
	return cmp.Or(cmp.Compare(k.Policy, other.Policy), cmp.Compare(k.Group, other.Group))
}
