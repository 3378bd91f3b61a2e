package policies

import (
	"maps"
	"slices"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// Pod is what a Matcher needs to know of a pod.
type Pod struct {
	// UID is the pod's UID in the limiter, Namespace the name of its namespace.
	UID, Namespace string
	// Facts are what policies ask of the pod. With the zero value it matches as a pod without labels that
	// requests nothing.
	Facts startpolicy.Facts
}

// groupedPod is what a Matcher knows of a pod.
type groupedPod struct {
	Pod
	groups         []throttle.Membership
	running, ready bool
}

// Groups adds or updates a pod, and returns its groups, which must not be changed. It passes the groups to the limiter
// if they have changed.
func (m *Matcher) Groups(now time.Time, pod Pod) []throttle.Membership {
	one := m.pod(pod)
	return m.put(now, one, one.running, one.ready)
}

// Rests notes that no container of a pod runs. If the pod was admitted before, it still counts as running, but is not
// ready any more.
func (m *Matcher) Rests(now time.Time, pod Pod) {
	one := m.pod(pod)
	m.put(now, one, one.running, false)
}

// Runs notes that a container of a pod runs that was admitted and has not finished; ready reports whether its
// containers are ready.
func (m *Matcher) Runs(now time.Time, pod Pod, ready bool) { m.put(now, m.pod(pod), true, ready) }

// Ready notes that the limiter counts a pod as ready, because its start seems to be over. The pod may be unknown.
func (m *Matcher) Ready(uid string) {
	if one := m.pods[uid]; one != nil {
		one.running, one.ready = true, true
	}
}

// Finished notes that a pod has stopped running. It may start again. The pod may be unknown.
func (m *Matcher) Finished(now time.Time, uid string) {
	if one := m.pods[uid]; one != nil {
		one.running, one.ready = false, false
	}
	m.limiter.Finished(now, uid)
}

// Forget drops all that is known of a pod that is gone. The pod may be unknown.
func (m *Matcher) Forget(now time.Time, uid string) {
	delete(m.pods, uid)
	m.limiter.Finished(now, uid)
}

func (m *Matcher) pod(pod Pod) *groupedPod {
	one := m.pods[pod.UID]
	if one == nil {
		one = &groupedPod{}
		m.pods[pod.UID] = one
	}
	one.Pod = pod
	return one
}

// put finds the groups of a pod, and informs the limiter where anything changed.
func (m *Matcher) put(now time.Time, one *groupedPod, running, ready bool) []throttle.Membership {
	groups := m.match(one.Pod)
	if one.running != running || one.ready != ready || !sameGroups(one.groups, groups) {
		one.groups, one.running, one.ready = groups, running, ready
		m.limiter.SetGroups(now, one.toLimiter())
	}
	return one.groups
}

func (p *groupedPod) toLimiter() throttle.PodGroups {
	return throttle.PodGroups{UID: p.UID, Groups: p.groups, Running: p.running, Ready: p.ready}
}

// regroup matches all pods anew, and returns those whose groups changed. The limiter has to take them over in
// one step: otherwise a waiting pod could be admitted to a group that some pods have left already while
// others have yet to join it.
func (m *Matcher) regroup() (changed []throttle.PodGroups) {
	for _, one := range m.pods {
		if groups := m.match(one.Pod); !sameGroups(one.groups, groups) {
			one.groups = groups
			changed = append(changed, one.toLimiter())
		}
	}
	return changed
}

// match returns the groups of a pod.
func (m *Matcher) match(pod Pod) (groups []throttle.Membership) {
	namespace := m.labelsOf(pod.Namespace)
	for _, s := range m.states {
		if s.Fault != "" {
			continue
		}
		if match, ok := s.Policy.Match(pod.Facts, namespace); ok {
			groups = append(groups, throttle.Membership{
				Key:      throttle.GroupKey{Policy: s.Object.Name, Group: match.Group},
				Requests: throttle.Amounts(pod.Facts.Requests), Bypass: match.Bypass,
			})
		}
	}
	return groups
}

func sameGroups(a, b []throttle.Membership) bool {
	return slices.EqualFunc(a, b, func(a, b throttle.Membership) bool {
		return a.Key == b.Key && a.Bypass == b.Bypass && maps.Equal(a.Requests, b.Requests)
	})
}
