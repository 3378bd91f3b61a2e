package plugin

import (
	"slices"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/leases"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
)

// claims is what is claimed now; nothing without a cluster.
func (c *cluster) claims() leases.View {
	if c == nil {
		return leases.View{}
	}
	return c.claimer.View()
}

// policyStates returns the policies in force; those that hold no pod have that for a fault.
func (d *Daemon) policyStates() []policies.State {
	return withUnheld(d.matcher.State(), d.cluster.claims())
}

// withUnheld notes which policies hold no pod because nothing can be claimed.
func withUnheld(states []policies.State, v leases.View) []policies.State {
	for i, s := range states {
		if s.Fault == "" && v.Fault != nil && slices.Contains(v.UnheldPolicies, s.Object.Name) {
			states[i].Fault = "its Leases cannot be used: " + v.Fault.Error()
		}
	}
	return states
}
