package throttle

import (
	"reflect"
	"slices"
	"time"
)

// PodGroups are the groups of a pod, as SetPolicies replaces them.
type PodGroups struct {
	UID    string
	Groups []Membership
	// Running: as [Limiter.SetRunning] says it, Ready too; else as [Limiter.SetGroups].
	Running, Ready bool
}

// SetPolicies replaces the limits of all policies, by the policy's name, and the groups
// of the pods that are given, in one step: nobody is admitted by a part of it. A policy
// that is absent bounds nothing. What is counted is kept, and whoever may start by the new
// limits is admitted. The limiter keeps what it is given: it must not be changed
// afterwards.
func (l *Limiter) SetPolicies(now time.Time, limits map[string]GroupLimits, pods ...PodGroups) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now = l.clockLocked(now)
	if l.replacePoliciesLocked(limits) {
		for _, g := range l.groups {
			g.limits = noLimits
			if of := l.policies[g.key.Policy]; of != nil {
				g.limits = of
			}
		}
		l.classifyAllLocked()
	} else if len(pods) == 0 {
		return
	}
	defer l.changedLocked()
	for _, pod := range pods {
		if pod.Running {
			l.setRunningLocked(pod.UID, pod.Groups, pod.Ready)
		} else {
			l.setGroupsLocked(pod.UID, pod.Groups)
		}
	}
	l.admitLocked(now)
}

// replacePoliciesLocked tells whether anything is other than it was.
func (l *Limiter) replacePoliciesLocked(given map[string]GroupLimits) bool {
	policies, same := make(map[string]*limits, len(given)), len(given) == len(l.policies)
	for name, g := range given {
		old := l.policies[name]
		if old != nil && reflect.DeepEqual(old.given, g) {
			policies[name] = old
			continue
		}
		policies[name], same = newLimits(g), false
	}
	l.policies = policies
	return !same
}

// classifyAllLocked puts all that wait into their classes.
func (l *Limiter) classifyAllLocked() {
	var all []*Ticket
	for _, m := range l.members {
		if m.ticket != nil && m.ticket.state == Waiting {
			all = append(all, m.ticket)
		}
	}
	slices.SortFunc(all, before) // so that classes come in the same order each time
	for _, t := range all {
		l.classifyLocked(t)
	}
}

// SetGroups replaces the groups of a pod that waits, starts or runs: a policy or what
// it selects by has changed. It keeps its place in the queue. Of a pod that the
// limiter does not know, nothing is kept: [Limiter.SetRunning] tells of one that runs.
func (l *Limiter) SetGroups(now time.Time, uid string, groups []Membership) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now = l.clockLocked(now)
	if l.setGroupsLocked(uid, groups) {
		defer l.changedLocked()
		l.admitLocked(now)
	}
}

// setGroupsLocked tells whether anything is other than it was.
func (l *Limiter) setGroupsLocked(uid string, groups []Membership) bool {
	m := l.members[uid]
	if t := l.tickets[uid]; m == nil && t != nil && !t.hasEnded() {
		if len(groups) == 0 {
			return false
		}
		m = l.memberLocked(uid)
		m.ticket, m.running, t.member = t, t.state == Starting, m
	}
	if m == nil || m.has(groups) {
		return false
	}
	l.regroupLocked(m, groups)
	return true
}

// SetRunning says that a pod was admitted and has not finished, whether it has a ticket
// or not, and what it counts for in which groups, which replace those it had; ready is
// whether its containers are. A pod that runs counts once, however often it
// starts anew, and no bound of Running holds it.
func (l *Limiter) SetRunning(now time.Time, uid string, groups []Membership, ready bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now = l.clockLocked(now)
	if l.setRunningLocked(uid, groups, ready) {
		defer l.changedLocked()
		l.admitLocked(now)
	}
}

// setRunningLocked tells whether anything is other than it was.
func (l *Limiter) setRunningLocked(uid string, groups []Membership, ready bool) bool {
	m := l.members[uid]
	if m == nil {
		if len(groups) == 0 {
			return false
		}
		m = l.memberLocked(uid)
		if t := l.tickets[uid]; t != nil && !t.hasEnded() {
			m.ticket, t.member = t, m
		}
	}
	if m.running && m.ready == ready && m.has(groups) {
		return false
	}
	m.change(func() { m.running, m.ready = true, ready })
	l.regroupLocked(m, groups)
	return true
}

// Finished says that a pod runs no longer and will not: it succeeded, failed for good
// or is gone. Until then it counts among those that run from its admission on.
func (l *Limiter) Finished(now time.Time, uid string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now = l.clockLocked(now)
	m := l.members[uid]
	if m == nil || !m.running {
		return
	}
	defer l.changedLocked()
	m.change(func() { m.running, m.ready = false, false })
	if t := m.ticket; t != nil && t.state == Waiting {
		l.classifyLocked(t)
	}
	l.dropMemberLocked(m)
	l.admitLocked(now)
}

// regroupLocked replaces the groups of a pod.
func (l *Limiter) regroupLocked(m *member, groups []Membership) {
	t := m.ticket
	l.setPartsLocked(m, groups, func() {
		if t != nil && t.state == Waiting {
			l.classifyLocked(t)
		}
	})
	l.dropMemberLocked(m)
}

// SetClaims says how many pods of the group may start at a time, where its policy has
// GroupLimits.Claims, now or later. Below zero: any number, for nobody can say. The
// group is remembered, without pods too, until it is said to have none.
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
	l.dropGroupLocked(g)
	l.admitLocked(now)
}
