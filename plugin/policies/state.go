package policies

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// State is a policy of a Set.
type State struct {
	// Object is the policy as it was read. It must not be changed.
	Object *v1alpha1.StartPolicy
	// Policy is the compiled Object.
	Policy *startpolicy.Policy
	// Calculated are its limits, with the overrides. [Set.Limits] has them unless there is a Fault or the mode takes the
	// policy out of force.
	Calculated startpolicy.Calculated
	// Fault is why the policy holds no pod; empty if nothing is wrong with it.
	Fault string

	reported    string    // the Fault that Changes had last; empty if it had none, or its end
	unreadSince time.Time // since when the Fault is namespacesUnread; zero if it is another or none
}

// Compile compiles valid policies for [Set.WithPolicies]. The policies must not be changed afterwards. It may take
// long, so no lock should be held.
func Compile(inForce []*v1alpha1.StartPolicy) (compiled []State) {
	for _, one := range inForce {
		compiled = append(compiled, State{Object: one, Policy: startpolicy.Compile(one)})
	}
	return compiled
}

// Changes are what others need to know about a new Set.
type Changes struct {
	// Faults are why policies hold no pod, by name, where that is new. That the labels of namespaces are not read yet is
	// among them only once that has lasted for 30 s.
	Faults map[string]string
	// Evaluated are the policies that had a fault in Faults and have none now. Gone are those that had one and do not exist
	// any more.
	Evaluated, Gone []string
	// Overridden are the policies whose temporary override began or ended.
	Overridden []string
	// NeedsNamespaces is true where a policy needs the labels of namespaces.
	NeedsNamespaces bool
	// NewFacts is true where the pod watch has to extract other facts from now on: those that Extract
	// returns, or none where that is nil. Extract is safe for concurrent use.
	NewFacts bool
	Extract  func(*corev1.Pod) startpolicy.Facts
}

// note adds how a policy has changed.
func (c *Changes) note(before, after State) {
	name := after.Object.Name
	switch {
	case after.reported == before.reported:
	case after.Policy == nil:
		c.Gone = append(c.Gone, name)
	case after.reported == "":
		c.Evaluated = append(c.Evaluated, name)
	default:
		c.Faults[name] = after.reported
	}
	if before.Policy != nil && after.Policy != nil && !before.Calculated.Since.Equal(after.Calculated.Since) {
		c.Overridden = append(c.Overridden, name)
	}
}
