package plugin

import (
	"slices"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/leases"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
)

// claims is what is claimed now; nothing without an API server.
func (d *Daemon) claims() leases.View {
	if d.cluster == nil {
		return leases.View{}
	}
	return d.cluster.claimer.View()
}

// policyStates returns the policies in force; those that hold no pod have that for a fault.
func (d *Daemon) policyStates() []policies.State {
	return withUnheld(d.matcher.State(), d.claims())
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
