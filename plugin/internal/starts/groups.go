package starts

import (
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// subject is a pod, and what is known of it that policies may ask.
type subject struct {
	Identity
	sandbox *api.PodSandbox    // nil if it is not at hand
	facts   *startpolicy.Facts // of the pod watch; nil if it has none
}

// subjectOf returns the pod of a sandbox. pod is what the pod watch knows of it, or the zero value.
func subjectOf(sandbox *api.PodSandbox, pod podwatch.Pod) subject {
	return subject{Identity: identify(sandbox), sandbox: sandbox, facts: pod.Facts}
}

// match finds the groups of the pod: by the facts of the pod watch or, until it has them, by the labels and the CPU
// request that the runtime reports.
func (s subject) match(set *policies.Set) matched {
	m := matched{Pod: policies.Pod{Namespace: s.Namespace}, known: s.facts != nil || s.sandbox != nil}
	if s.facts != nil {
		m.Facts = *s.facts
	} else if s.sandbox != nil {
		m.Facts.Labels = set.Needs().LabelsOf(s.sandbox.GetLabels())
		if cpu := milliCPU(s.sandbox); cpu > 0 {
			m.Facts.Requests = map[string]int64{"cpu": cpu}
		}
	}
	m.groups = set.Groups(m.Pod)
	return m
}

// milliCPU returns the CPU request of a pod in thousandths of a core, from the weight that kubelet gives its cgroup, or
// 0 if it has none or that is not known.
func milliCPU(sandbox *api.PodSandbox) int64 {
	const perCore, least = 1024, 2 // kubelet's weight of one core, and of no request
	shares := int64(sandbox.GetLinux().GetPodResources().GetCpu().GetShares().GetValue())
	if shares <= least {
		return 0
	}
	return (shares*1000 + perCore - 1) / perCore
}

// matched is what policies have to know of a pod, with its groups by those in force. The zero value: the pod was not
// matched yet.
type matched struct {
	policies.Pod
	groups []throttle.Membership
	known  bool // the runtime or the pod watch has said what policies ask
}

// SetPolicies replaces the StartPolicies in force. They must not be changed afterwards. Calls must not overlap.
func (s *Starts) SetPolicies(now time.Time, inForce []*v1alpha1.StartPolicy) {
	compiled := policies.Compile(inForce)
	s.changePolicies(now, func(set *policies.Set) (*policies.Set, *policies.Changes) { return set.WithPolicies(now, compiled) })
	s.Wake() // an override may begin
}

// SetNamespaces implements [policies.NamespaceUser]. A policy that makes it panic does not end the daemon.
func (s *Starts) SetNamespaces(now time.Time, labels map[string]map[string]string) {
	defer s.o.Observer.Caught("SetNamespaces")
	s.changePolicies(now, func(set *policies.Set) (*policies.Set, *policies.Changes) { return set.WithNamespaces(now, labels) })
	s.Wake() // policies of the scope Cluster may come into force
}

// Policies returns the StartPolicies in force.
func (s *Starts) Policies() []policies.State { return s.inForce.Load().State() }

// advancePolicies begins and ends the temporary overrides that are due, and returns when the next one is due, or zero if
// none will be.
func (s *Starts) advancePolicies(now time.Time) (next time.Time) {
	s.changePolicies(now, func(set *policies.Set) (*policies.Set, *policies.Changes) { return set.Advance(now) })
	return s.inForce.Load().Next()
}

// changePolicies replaces the policies in force, reports what has changed, and calls PoliciesChanged. It calls f again if
// something else has changed while it matched the pods.
func (s *Starts) changePolicies(now time.Time, f func(*policies.Set) (*policies.Set, *policies.Changes)) {
	for {
		before := s.inForce.Load()
		next, c := f(before)
		if next == before {
			return
		}
		if s.putInForce(now, before, next) {
			s.o.Observer.Report(observe.PolicyChanges{Changes: *c})
			s.o.PoliciesChanged(*c)
			return
		}
	}
}

// putInForce replaces the policies in force, and the groups of all pods by what matches them, in one step. Otherwise, a pod
// that waits could be admitted to a group that some pods have left already while others have yet to join it. putInForce
// finds the groups before it takes the lock, and does nothing and returns false if the policies or what is known of pods
// have changed in between.
func (s *Starts) putInForce(now time.Time, before, next *policies.Set) bool {
	s.lock()
	version, found := s.ledger.version, make(map[string]matched, len(s.ledger.pods))
	for uid, p := range s.ledger.pods {
		found[uid] = p.matched
	}
	s.unlock()
	for uid, m := range found {
		m.groups = next.Groups(m.Pod)
		found[uid] = m
	}
	limits := next.Limits()
	s.lock()
	defer s.unlock()
	if s.inForce.Load() != before || s.ledger.version != version {
		return false
	}
	s.inForce.Store(next)
	groups := make([]throttle.PodGroups, 0, len(found))
	for uid, p := range s.ledger.pods { // some may have gone meanwhile, but none has come
		p.matched = found[uid]
		groups = append(groups, throttle.PodGroups{UID: uid, Groups: p.matched.groups})
	}
	s.ledger.limiter.SetPolicies(now, limits, groups...)
	return true
}
