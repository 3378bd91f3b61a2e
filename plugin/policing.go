package plugin

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
)

// The time within which a node lists its pods anew for a new policy: all nodes of a
// cluster do, and each at a random moment, so that 5,000 of them make 170 lists a second
// for 30 s, which are answered from the API server's memory. A cluster of fewer than 300
// nodes takes less than 30 s, at 10 lists a second: until its list, a node does not know
// which of its pods the policy selects, and admits others beyond a limit of those that run.
const (
	retakeAll     = 30 * time.Second       // of 300 nodes or more
	retakeSmall   = 100 * time.Millisecond // for each node, if they are fewer
	retakePerNode = 6 * time.Millisecond   // for each node, if they are more than 5,000
)

// retakeWithin gives that time for a cluster of so many nodes; 0: nobody knows how many.
func retakeWithin(nodes int) time.Duration {
	if nodes <= 0 {
		nodes = 1
	}
	return min(time.Duration(nodes)*retakeSmall, max(retakeAll, time.Duration(nodes)*retakePerNode))
}

// policiesWithin bounds how long the gate stays closed for policies that nobody tells.
const policiesWithin = 5 * time.Second

// followPolicies makes the daemon follow the StartPolicies in the API server.
func (d *Daemon) followPolicies(c clients) {
	o := d.options
	d.namespaces = policies.NewNamespaces(c.kube, o.Log)
	d.claimer = d.newClaimer(c)
	d.pacer.claimer = d.claimer
	d.pacer.keeper = policies.New(policies.Options{
		Limiter: d.pacer.limiter, Log: o.Log, Notice: func(policy, fault string) {
			d.pacer.notices.node(corev1.EventTypeWarning, "PolicyNotEvaluated", "StartPolicy "+policy+" holds nobody: "+fault)
		},
		WatchNamespaces: d.namespaces.Need, Claims: d.claimer.SetPolicies,
		TakeFacts: func(take func(*corev1.Pod) startpolicy.Facts) {
			d.watch.TakeFacts(take, retakeWithin(d.election.Nodes()))
		},
	})
	d.policies = d.source.Policies(d.filePolicies, d.setPolicies)
	if o.StateDir != "" {
		d.policies.Remember(o.policiesPath())
	}
}

// setPolicies puts policies in force.
func (d *Daemon) setPolicies(inForce []*v1alpha1.StartPolicy) {
	defer d.pacer.caught("setPolicies")
	d.pacer.keeper.SetPolicies(time.Now(), inForce)
	d.pacer.wake() // an override may begin
}

// awaitPolicies waits until it is known which policies there are; false: ctx ended
// before. With an API server that is away and nothing on disk, because the daemon
// before was of another version, that may never be: then it waits for a moment.
func (d *Daemon) awaitPolicies(ctx context.Context) bool {
	if d.policies == nil {
		return true
	}
	moment := time.NewTimer(policiesWithin)
	defer moment.Stop()
	select {
	case <-d.policies.Told():
	case <-moment.C:
		d.options.Log.Warn("the API server has not told the StartPolicies yet: those that wait in the gate are not held by any until it does")
	case <-ctx.Done():
		return false
	}
	return true
}
