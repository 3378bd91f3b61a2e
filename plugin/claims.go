package plugin

import (
	"slices"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/leases"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
)

// newClaimer returns what claims the slots of the scope Cluster; nil without Leases. nodes returns the number of nodes of
// the cluster, or 0 if it is not known.
func newClaimer(o Options, slots kube.Leases, l leases.Limiter, nodes func() int, observer *observe.Observer) *leases.Claimer {
	if slots == nil {
		return nil
	}
	return leases.New(leases.Options{
		API: slots, Holder: o.nameOnNode(), Limiter: l, Nodes: nodes, Log: o.Log,
		OpenChanged: func(open []string, why error) { observer.Report(observe.ClusterPolicies{Open: open, Why: why}) },
	})
}

// claims returns the slots of the scope Cluster that this node claims now; none without a cluster.
func (d *Daemon) claims() leases.View {
	if d.claimer == nil {
		return leases.View{}
	}
	return d.claimer.View()
}

// policyStates returns the policies in force. A policy that holds no pod because its slots cannot be claimed has that as its
// fault.
func (d *Daemon) policyStates() []policies.State {
	states, v := d.starts.Policies(), d.claims()
	for i, s := range states {
		if s.Fault == "" && v.Fault != nil && slices.Contains(v.OpenPolicies, s.Object.Name) {
			states[i].Fault = "its Leases cannot be used: " + v.Fault.Error()
		}
	}
	return states
}
