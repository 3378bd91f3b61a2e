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

// policyStates returns the policies in force; those that are open have that for a fault.
func (d *Daemon) policyStates() []policies.State {
	return withOpen(d.matcher.State(), d.claims())
}

// withOpen notes which policies hold no pod because nothing can be claimed.
func withOpen(states []policies.State, v leases.View) []policies.State {
	for i, s := range states {
		if s.Fault == "" && v.Open != nil && slices.Contains(v.OpenPolicies, s.Object.Name) {
			states[i].Fault = "its Leases cannot be used: " + v.Open.Error()
		}
	}
	return states
}
