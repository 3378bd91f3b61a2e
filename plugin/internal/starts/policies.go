package starts

import (
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
)

// Policies are the StartPolicies in force. It is part of a Starts. Its methods are safe for concurrent use, but
// for Set, and do not block.
type Policies struct{ s *Starts }

// Set replaces the policies, which must not be changed afterwards. Calls must not overlap.
func (p *Policies) Set(now time.Time, inForce []*v1alpha1.StartPolicy) {
	set := policies.Compile(inForce, p.s.o.Log)
	p.change(func(m *policies.Matcher) *policies.Changes { return m.SetPolicies(now, set) })
	p.s.Wake() // an override may begin
}

// SetNamespace sets the labels of a namespace; nil: it is gone.
func (p *Policies) SetNamespace(now time.Time, name string, labels map[string]string) {
	p.change(func(m *policies.Matcher) *policies.Changes { m.SetNamespace(now, name, labels); return nil })
}

// SetNamespacesKnown notes that SetNamespace was called for all namespaces.
func (p *Policies) SetNamespacesKnown(now time.Time) {
	p.change(func(m *policies.Matcher) *policies.Changes { return m.SetNamespacesKnown(now) })
	p.s.Wake() // policies of the scope Cluster may come into force
}

// advance begins and ends the temporary overrides that are due, and returns when the next one is; zero: never.
func (p *Policies) advance(now time.Time) (next time.Time) {
	p.change(func(m *policies.Matcher) (c *policies.Changes) { next, c = m.Advance(now); return c })
	return next
}

// suspend takes all policies out of force, or puts them back.
func (p *Policies) suspend(now time.Time, suspended bool) {
	p.change(func(m *policies.Matcher) *policies.Changes { return m.Suspend(now, suspended) })
}

// change changes the policies, or what they need to know, under the Ledger's lock. Once that is
// free, it logs what changed and calls PoliciesChanged.
func (p *Policies) change(change func(*policies.Matcher) *policies.Changes) {
	c := p.underLock(change)
	if c == nil {
		return
	}
	for name, fault := range c.Faults {
		p.s.o.Log.WithFields(logrus.Fields{"policy": name, "reason": fault}).Warnf("StartPolicy %s cannot be evaluated, and holds no pod: %s", name, fault)
	}
	for _, name := range c.Evaluated {
		p.s.o.Log.WithField("policy", name).Infof("StartPolicy %s can be evaluated again, or is gone", name)
	}
	for _, name := range c.Overridden {
		p.s.o.Log.WithField("policy", name).Infof("a temporary override of StartPolicy %s began or ended", name)
	}
	p.s.o.PoliciesChanged(*c)
}

func (p *Policies) underLock(change func(*policies.Matcher) *policies.Changes) *policies.Changes {
	p.s.Ledger.mu.Lock()
	defer p.s.Ledger.mu.Unlock()
	return change(p.s.Ledger.entries.matcher)
}

// State returns the policies in force.
func (p *Policies) State() []policies.State {
	p.s.Ledger.mu.Lock()
	defer p.s.Ledger.mu.Unlock()
	return p.s.Ledger.entries.matcher.State()
}
