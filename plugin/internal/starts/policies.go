package starts

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
)

// Policies are the StartPolicies in force. It is part of a Starts. Its methods do not block. They are safe for
// concurrent use, but calls of Set must not overlap.
type Policies struct{ s *Starts }

// Set replaces the policies, which must not be changed afterwards. Calls must not overlap.
func (p *Policies) Set(now time.Time, inForce []*v1alpha1.StartPolicy) {
	compiled := policies.Compile(inForce)
	p.change(now, func(s *policies.Set) (*policies.Set, *policies.Changes) { return s.WithPolicies(now, compiled) })
	p.s.Wake() // an override may begin
}

// SetNamespaces implements [policies.NamespaceUser].
func (p *Policies) SetNamespaces(now time.Time, labels map[string]map[string]string) {
	p.change(now, func(s *policies.Set) (*policies.Set, *policies.Changes) { return s.WithNamespaces(now, labels) })
	p.s.Wake() // policies of the scope Cluster may come into force
}

// State returns the policies in force.
func (p *Policies) State() []policies.State { return p.s.inForce.Load().State() }

// advance begins and ends the temporary overrides that are due, and returns when the next one is due, or zero if none
// will be.
func (p *Policies) advance(now time.Time) (next time.Time) {
	p.change(now, func(s *policies.Set) (*policies.Set, *policies.Changes) { return s.Advance(now) })
	return p.s.inForce.Load().Next()
}

// suspend takes all policies out of force, or puts them back.
func (p *Policies) suspend(now time.Time, suspended bool) {
	p.change(now, func(s *policies.Set) (*policies.Set, *policies.Changes) { return s.Suspend(now, suspended) })
}

// change replaces the policies in force, reports what has changed, and calls PoliciesChanged. It calls f again if
// something else has changed while it matched the pods.
func (p *Policies) change(now time.Time, f func(*policies.Set) (*policies.Set, *policies.Changes)) {
	for {
		before := p.s.inForce.Load()
		next, c := f(before)
		if next == before {
			return
		}
		if p.enforce(now, before, next) {
			p.s.o.Observer.Report(observe.PolicyChanges{Changes: *c})
			p.s.o.PoliciesChanged(*c)
			return
		}
	}
}

// enforce replaces the policies in force, and the groups of all pods by what matches them, in one step. It finds the
// groups before it takes the lock, and does nothing and returns false if the policies or what is known of pods have
// changed in between.
func (p *Policies) enforce(now time.Time, before, next *policies.Set) bool {
	s := p.s
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
