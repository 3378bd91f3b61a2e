package policies

import (
	"maps"
	"slices"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// See notes what is known of a pod of which no container runs, and returns its groups,
// which must not be changed. The limiter is told where they have changed, and that one
// which was admitted before is not ready.
func (m *Matcher) See(now time.Time, pod Pod) []throttle.Membership {
	m.mu.Lock()
	defer m.mu.Unlock()
	one := m.memberLocked(pod)
	if one.running && one.ready {
		one.groups, one.ready = m.groupsOfLocked(one.Pod), false
		m.options.Limiter.SetGroups(now, one.toLimiter())
		return one.groups
	}
	m.placeLocked(now, one)
	return one.groups
}

// Join notes what is known of a pod that joins the queue, and calls join with its
// groups, which must not be changed: join has the pod join the queue, and its ticket is
// what Join gives. The groups stay as they are while it runs, and the limiter is told of a
// change only afterwards. join must neither block nor call the Matcher.
func (m *Matcher) Join(now time.Time, pod Pod, join func(groups []throttle.Membership) *throttle.Ticket) *throttle.Ticket {
	m.mu.Lock()
	defer m.mu.Unlock()
	one := m.memberLocked(pod)
	m.placeLocked(now, one)
	return join(one.groups)
}

// Runs notes what is known of a pod that was admitted, has not finished, and of which
// a container runs; ready is whether its containers are.
func (m *Matcher) Runs(now time.Time, pod Pod, ready bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	one := m.memberLocked(pod)
	groups := m.groupsOfLocked(one.Pod)
	if one.running && one.ready == ready && sameGroups(one.groups, groups) {
		return
	}
	one.groups, one.running, one.ready = groups, true, ready
	m.options.Limiter.SetGroups(now, one.toLimiter())
}

// Finished says that a pod runs no longer; it may start anew. One that is not known is no
// error.
func (m *Matcher) Finished(now time.Time, uid string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if one := m.pods[uid]; one != nil {
		one.running, one.ready = false, false
	}
	m.options.Limiter.Finished(now, uid)
}

// Forget says that a pod is gone, so that nothing of it is kept. One that is not known is
// no error.
func (m *Matcher) Forget(now time.Time, uid string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pods, uid)
	m.options.Limiter.Finished(now, uid)
}

// toLimiter returns what the limiter is told of a pod.
func (m *member) toLimiter() throttle.PodGroups {
	return throttle.PodGroups{UID: m.UID, Groups: m.groups, Running: m.running, Ready: m.ready}
}

func (m *Matcher) memberLocked(pod Pod) *member {
	one := m.pods[pod.UID]
	if one == nil {
		one = &member{}
		m.pods[pod.UID] = one
	}
	one.Pod = pod
	return one
}

// regroupLocked matches every pod anew, for the policies or the labels of namespaces have
// changed, and gives those whose groups have: for the limiter to take over in one step. Else
// those that wait would be shown groups from which others have gone already, or into which
// they have yet to come. m.mu must be held.
func (m *Matcher) regroupLocked() (changed []throttle.PodGroups) {
	for _, one := range m.pods {
		groups := m.groupsOfLocked(one.Pod)
		if sameGroups(one.groups, groups) {
			continue
		}
		one.groups = groups
		changed = append(changed, one.toLimiter())
	}
	return changed
}

// placeLocked finds the groups of a pod, and tells the limiter where they have
// changed. m.mu must be held.
func (m *Matcher) placeLocked(now time.Time, one *member) {
	groups := m.groupsOfLocked(one.Pod)
	if sameGroups(one.groups, groups) {
		return
	}
	one.groups = groups
	m.options.Limiter.SetGroups(now, one.toLimiter())
}

// groupsOfLocked matches a pod with every policy. m.mu must be held.
func (m *Matcher) groupsOfLocked(pod Pod) (groups []throttle.Membership) {
	if len(m.policies) == 0 {
		return nil
	}
	namespace := m.namespaces.of(pod.Namespace)
	for _, policy := range m.policies {
		if m.faults[policy.Name] != "" {
			continue
		}
		if match, ok := policy.Match(pod.Facts, namespace); ok {
			groups = append(groups, membership(policy, match, pod.Facts))
		}
	}
	return groups
}

func membership(policy *startpolicy.Policy, match startpolicy.Match, facts startpolicy.Facts) throttle.Membership {
	return throttle.Membership{
		Key:      throttle.GroupKey{Policy: policy.Name, Group: match.Group},
		Requests: throttle.Amounts(facts.Requests), Bypass: match.Bypass,
	}
}

func sameGroups(a, b []throttle.Membership) bool {
	return slices.EqualFunc(a, b, func(a, b throttle.Membership) bool {
		return a.Key == b.Key && a.Bypass == b.Bypass && maps.Equal(a.Requests, b.Requests)
	})
}
