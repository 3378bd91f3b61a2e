package policies

import (
	"slices"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// See notes what is known of a pod of which no container runs, and returns its groups,
// which must not be changed. The limiter is told where they have changed, and that one
// which was admitted before is not ready.
func (k *Matcher) See(now time.Time, pod Pod) []throttle.Membership {
	k.mu.Lock()
	defer k.mu.Unlock()
	m := k.memberLocked(pod)
	if m.running && m.ready {
		m.groups, m.ready = k.groupsOfLocked(m.Pod), false
		k.options.Limiter.SetGroups(now, m.toLimiter())
		return m.groups
	}
	k.placeLocked(now, m)
	return m.groups
}

// Join notes what is known of a pod that joins the queue, and calls join with its
// groups, which must not be changed: join has the pod join the queue, and its ticket is
// what Join gives. The groups stay as they are while it runs, and the limiter is told of a
// change only afterwards. join must neither block nor call the Matcher.
func (k *Matcher) Join(now time.Time, pod Pod, join func(groups []throttle.Membership) *throttle.Ticket) *throttle.Ticket {
	k.mu.Lock()
	defer k.mu.Unlock()
	m := k.memberLocked(pod)
	k.placeLocked(now, m)
	return join(m.groups)
}

// Runs notes what is known of a pod that was admitted, has not finished, and of which
// a container runs; ready is whether its containers are.
func (k *Matcher) Runs(now time.Time, pod Pod, ready bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	m := k.memberLocked(pod)
	groups := k.groupsOfLocked(m.Pod)
	if m.running && m.ready == ready && sameGroups(m.groups, groups) {
		return
	}
	m.groups, m.running, m.ready = groups, true, ready
	k.options.Limiter.SetGroups(now, m.toLimiter())
}

// Finished says that a pod runs no longer; it may start anew. One that is not known is no
// error.
func (k *Matcher) Finished(now time.Time, uid string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if m := k.pods[uid]; m != nil {
		m.running, m.ready = false, false
	}
	k.options.Limiter.Finished(now, uid)
}

// Forget says that a pod is gone, so that nothing of it is kept. One that is not known is
// no error.
func (k *Matcher) Forget(now time.Time, uid string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.pods, uid)
	k.options.Limiter.Finished(now, uid)
}

// toLimiter returns what the limiter is told of a pod.
func (m *member) toLimiter() throttle.PodGroups {
	return throttle.PodGroups{UID: m.UID, Groups: m.groups, Running: m.running, Ready: m.ready}
}

func (k *Matcher) memberLocked(pod Pod) *member {
	m := k.pods[pod.UID]
	if m == nil {
		m = &member{}
		k.pods[pod.UID] = m
	}
	m.Pod = pod
	return m
}

// regroupLocked matches every pod anew, for the policies or the labels of namespaces have
// changed, and gives those whose groups have: for the limiter to take over in one step. Else
// those that wait would be shown groups from which others have gone already, or into which
// they have yet to come. k.mu must be held.
func (k *Matcher) regroupLocked() (changed []throttle.PodGroups) {
	for _, m := range k.pods {
		groups := k.groupsOfLocked(m.Pod)
		if sameGroups(m.groups, groups) {
			continue
		}
		m.groups = groups
		changed = append(changed, m.toLimiter())
	}
	return changed
}

// placeLocked finds the groups of a pod, and tells the limiter where they have
// changed. k.mu must be held.
func (k *Matcher) placeLocked(now time.Time, m *member) {
	groups := k.groupsOfLocked(m.Pod)
	if sameGroups(m.groups, groups) {
		return
	}
	m.groups = groups
	k.options.Limiter.SetGroups(now, m.toLimiter())
}

// groupsOfLocked matches a pod with every policy. k.mu must be held.
func (k *Matcher) groupsOfLocked(pod Pod) (groups []throttle.Membership) {
	if len(k.policies) == 0 {
		return nil
	}
	namespace := k.namespaces.of(pod.Namespace)
	for _, policy := range k.policies {
		if k.faults[policy.Name] != "" {
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
		return a.Key == b.Key && a.Bypass == b.Bypass && sameAmounts(a.Requests, b.Requests)
	})
}

func sameAmounts(a, b throttle.Amounts) bool {
	if len(a) != len(b) {
		return false
	}
	for name, amount := range a {
		if other, ok := b[name]; !ok || other != amount {
			return false
		}
	}
	return true
}
