package starts

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
)

// SetPolicies replaces the StartPolicies in force. They must not be changed afterwards. Calls must not overlap.
func (s *Starts) SetPolicies(now time.Time, inForce []*v1alpha1.StartPolicy) {
	compiled := policies.Compile(inForce)
	s.changePolicies(now, func(set *policies.Set) (*policies.Set, *policies.Changes) { return set.WithPolicies(now, compiled) })
	s.Wake() // an override may begin
}

// SetNamespaces implements [policies.NamespaceUser].
func (s *Starts) SetNamespaces(now time.Time, labels map[string]map[string]string) {
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

// suspendPolicies takes all policies out of force, or puts them back.
func (s *Starts) suspendPolicies(now time.Time, suspended bool) {
	s.changePolicies(now, func(set *policies.Set) (*policies.Set, *policies.Changes) { return set.Suspend(now, suspended) })
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

// putInForce replaces the policies in force, and the groups of all pods by what matches them, in one step. It finds the
// groups before it takes the lock, and does nothing and returns false if the policies or what is known of pods have
// changed in between.
func (s *Starts) putInForce(now time.Time, before, next *policies.Set) bool {
	s.lock()
	version, found := s.ledger.version, make([]matched, 0, len(s.ledger.pods))
	for _, pod := range s.ledger.pods {
		found = append(found, matched{Pod: pod.matched.Pod})
	}
	s.unlock()
	for i := range found {
		found[i].groups = next.Groups(found[i].Pod)
	}
	limits := next.Limits()
	s.lock()
	defer s.unlock()
	if s.inForce.Load() != before || s.ledger.version != version {
		return false
	}
	s.inForce.Store(next)
	s.ledger.regroup(now, limits, found)
	return true
}
