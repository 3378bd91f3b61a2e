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
	compiled := policies.Compile(inForce, p.s.o.Log)
	p.change(func(m *policies.Matcher) *policies.Changes { return m.SetPolicies(now, compiled) })
	p.s.Wake() // an override may begin
}

// SetNamespace sets the labels of a namespace; nil: it is gone.
func (p *Policies) SetNamespace(now time.Time, name string, labels map[string]string) {
	p.s.Ledger.withMatcher(func(m *policies.Matcher) { m.SetNamespace(now, name, labels) })
}

// SetNamespacesKnown notes that SetNamespace was called for all namespaces.
func (p *Policies) SetNamespacesKnown(now time.Time) {
	p.change(func(m *policies.Matcher) *policies.Changes { return m.SetNamespacesKnown(now) })
	p.s.Wake() // policies of the scope Cluster may come into force
}

// State returns the policies in force.
func (p *Policies) State() (all []policies.State) {
	p.s.Ledger.withMatcher(func(m *policies.Matcher) { all = m.State() })
	return all
}

// advance begins and ends the temporary overrides that are due, and returns when the next one is; zero: never.
func (p *Policies) advance(now time.Time) (next time.Time) {
	p.change(func(m *policies.Matcher) (c *policies.Changes) {
		next, c = m.Advance(now)
		return c
	})
	return next
}

// suspend takes all policies out of force, or puts them back.
func (p *Policies) suspend(now time.Time, suspended bool) {
	p.change(func(m *policies.Matcher) *policies.Changes { return m.Suspend(now, suspended) })
}

// change changes the matcher, reports what has changed, and calls PoliciesChanged.
func (p *Policies) change(f func(*policies.Matcher) *policies.Changes) {
	var c *policies.Changes
	p.s.Ledger.withMatcher(func(m *policies.Matcher) { c = f(m) })
	if c == nil {
		return
	}
	p.s.o.Observer.Report(observe.PolicyChanges{Changes: *c})
	p.s.o.PoliciesChanged(*c)
}
