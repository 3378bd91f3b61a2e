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
	p.changed(p.replace(now, policies.Compile(inForce, p.s.o.Log)))
	p.s.Wake() // an override may begin
}

// SetNamespacesKnown notes that SetNamespace was called for all namespaces.
func (p *Policies) SetNamespacesKnown(now time.Time) {
	p.changed(p.namespacesKnown(now))
	p.s.Wake() // policies of the scope Cluster may come into force
}

// advance begins and ends the temporary overrides that are due, and returns when the next one is; zero: never.
func (p *Policies) advance(now time.Time) (next time.Time) {
	next, c := p.override(now)
	p.changed(c)
	return next
}

// suspend takes all policies out of force, or puts them back.
func (p *Policies) suspend(now time.Time, suspended bool) {
	p.changed(p.suspended(now, suspended))
}

// changed reports what has changed, and calls PoliciesChanged; nil: nothing has.
func (p *Policies) changed(c *policies.Changes) {
	if c == nil {
		return
	}
	p.s.o.Observer.Report(observe.PolicyChanges{Changes: *c})
	p.s.o.PoliciesChanged(*c)
}

// The methods below change and read the matcher, under the Ledger's lock.

func (p *Policies) replace(now time.Time, inForce []policies.State) *policies.Changes {
	p.s.Ledger.mu.Lock()
	defer p.s.Ledger.mu.Unlock()
	return p.s.Ledger.entries.matcher.SetPolicies(now, inForce)
}

// SetNamespace sets the labels of a namespace; nil: it is gone.
func (p *Policies) SetNamespace(now time.Time, name string, labels map[string]string) {
	p.s.Ledger.mu.Lock()
	defer p.s.Ledger.mu.Unlock()
	p.s.Ledger.entries.matcher.SetNamespace(now, name, labels)
}

func (p *Policies) namespacesKnown(now time.Time) *policies.Changes {
	p.s.Ledger.mu.Lock()
	defer p.s.Ledger.mu.Unlock()
	return p.s.Ledger.entries.matcher.SetNamespacesKnown(now)
}

func (p *Policies) override(now time.Time) (next time.Time, c *policies.Changes) {
	p.s.Ledger.mu.Lock()
	defer p.s.Ledger.mu.Unlock()
	return p.s.Ledger.entries.matcher.Advance(now)
}

func (p *Policies) suspended(now time.Time, suspended bool) *policies.Changes {
	p.s.Ledger.mu.Lock()
	defer p.s.Ledger.mu.Unlock()
	return p.s.Ledger.entries.matcher.Suspend(now, suspended)
}

// State returns the policies in force.
func (p *Policies) State() []policies.State {
	p.s.Ledger.mu.Lock()
	defer p.s.Ledger.mu.Unlock()
	return p.s.Ledger.entries.matcher.State()
}
