package plugin

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/leases"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
)

// Reasons of the events of the node that tell of policies of the scope Cluster.
const (
	policiesOpened = "StartPoliciesOpened"
	policiesClosed = "StartPoliciesClosed"
)

// newClaimer gives who claims starts for the policies of the scope Cluster.
func (d *Daemon) newClaimer(c clients) *leases.Claimer {
	o := d.options
	holder := o.NodeName
	if o.Instance != "" {
		holder += "." + o.Instance
	}
	return leases.New(leases.Options{
		API: c.kube.Leases(o.Namespace), Holder: holder, Limiter: d.pacer.limiter,
		Nodes: d.election.Nodes, Opened: d.tellOpened, Log: o.Log,
	})
}

// claim takes and gives back what the policies of the scope Cluster need, until ctx ends.
func (d *Daemon) claim(ctx context.Context) error {
	d.claimer.Run(ctx)
	return nil
}

// claims is what is claimed now; nothing without an API server.
func (d *Daemon) claims() leases.View {
	if d.claimer == nil {
		return leases.View{}
	}
	return d.claimer.View()
}

// tellOpened has the node's events say that policies hold no pod, or that all do again.
func (d *Daemon) tellOpened(names []string, why error) {
	if why == nil {
		d.pacer.notices.node(corev1.EventTypeNormal, policiesClosed, "the StartPolicies of the scope Cluster hold again")
		return
	}
	d.pacer.notices.node(corev1.EventTypeWarning, policiesOpened,
		cut("the StartPolicies "+strings.Join(names, ", ")+" hold no pod: "+why.Error(), mostMessage))
}

// policyStates gives the policies in force; those that are open have that for a fault.
func (d *Daemon) policyStates() []policies.State {
	return withOpen(d.pacer.keeper.State(), d.claims())
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
