package policies

import (
	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// State is a policy that is in force.
type State struct {
	// Object must not be changed.
	Object *v1alpha1.StartPolicy
	// Policy is what it says; nil if that cannot be read.
	Policy *startpolicy.Policy
	// Calculated are its limits as they were told to the limiter last; the zero value
	// where it cannot be read.
	Calculated startpolicy.Calculated
	// Fault is why it holds no pod; empty: it is in force.
	Fault string
}

// State returns the policies in force, in the order in which they were given.
func (m *Matcher) State() []State {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]State, 0, len(m.inForce))
	for _, one := range m.inForce {
		s := State{Object: one, Fault: m.faults[one.Name], Calculated: m.calculated[one.Name]}
		for _, policy := range m.policies {
			if policy.Name == one.Name {
				s.Policy = policy
			}
		}
		all = append(all, s)
	}
	return all
}
