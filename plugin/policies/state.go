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
func (k *Matcher) State() []State {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := make([]State, 0, len(k.inForce))
	for _, one := range k.inForce {
		s := State{Object: one, Fault: k.faults[one.Name], Calculated: k.calculated[one.Name]}
		for _, policy := range k.policies {
			if policy.Name == one.Name {
				s.Policy = policy
			}
		}
		all = append(all, s)
	}
	return all
}

// Any reports whether any policy is in force, also one that holds no pod.
func (k *Matcher) Any() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.inForce) > 0
}
