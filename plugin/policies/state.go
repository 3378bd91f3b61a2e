package policies

import (
	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// State is a policy that is in force.
type State struct {
	// Object must not be changed.
	Object *v1alpha1.StartPolicy
	// Policy is the compiled Object; nil if that is invalid.
	Policy *startpolicy.Policy
	// Calculated are the limits that the limiter has; the zero value if Policy is nil.
	Calculated startpolicy.Calculated
	// Fault is why the policy holds no pod; empty: it is in force.
	Fault string
}

// State returns the policies in force, in the order in which Compile got them.
func (m *Matcher) State() []State {
	compiled := map[string]*startpolicy.Policy{}
	for _, policy := range m.set.policies {
		compiled[policy.Name] = policy
	}
	all := make([]State, 0, len(m.set.inForce))
	for _, one := range m.set.inForce {
		all = append(all, State{Object: one, Policy: compiled[one.Name], Fault: m.faults[one.Name], Calculated: m.calculated[one.Name]})
	}
	return all
}
