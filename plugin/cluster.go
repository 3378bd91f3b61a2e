package plugin

import (
	"context"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/nodecondition"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/leases"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/report"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// cluster is what a daemon knows by the API server, and tells it.
type cluster struct {
	clients
	recorder *observe.Recorder
	watch    *podwatch.Watch
	// summary knows how large the cluster is, too.
	summary    *report.Summary
	namespaces *policies.Namespaces
	claimer    *leases.Claimer
	// source and policies give the configuration and the StartPolicies in force.
	source   *crd.Source
	policies *crd.Policies
}

// newCluster returns what calls no other part of the daemon before Run; claim and follow add the rest.
func newCluster(d *Daemon, c clients) *cluster {
	o := d.options
	cl := &cluster{
		clients: c, recorder: observe.NewRecorder(c.kube, o.NodeName, o.Instance), namespaces: policies.NewNamespaces(c.kube, o.Log),
	}
	cl.watch = podwatch.New(podwatch.Options{
		Client: c.kube, NodeName: o.NodeName, Log: o.Log, OnPanic: func() { d.observer.CountPanic("podwatch") },
		OnChange: func(pod podwatch.Pod, deleted bool) {
			defer d.observer.Caught("podChanged")
			d.starts.PodChanged(pod, deleted)
		},
	})
	cl.summary = report.NewSummary(report.SummaryOptions{
		API: c.dynamic, Leases: c.kube.Leases(o.Namespace), NodeName: o.NodeName, Instance: o.Instance, Log: o.Log,
		Policies: func() []crd.KnownPolicy { return cl.policies.Known() },
	})
	return cl
}

// Reasons of the events of the node that tell of policies of the scope Cluster.
const (
	policiesUnheld = "StartPoliciesOpened"
	policiesHeld   = "StartPoliciesClosed"
)

// claim makes the matcher of policies use the cluster: its pods, its namespaces, and the slots of
// the scope Cluster. It gives what wakes who claims those.
func (c *cluster) claim(l *throttle.Limiter, observer *observe.Observer, o Options, keeping *policies.Options) (wake func()) {
	holder := o.NodeName
	if o.Instance != "" {
		holder += "." + o.Instance
	}
	c.claimer = leases.New(leases.Options{
		API: c.kube.Leases(o.Namespace), Holder: holder, Limiter: l, Nodes: c.summary.Nodes, Log: o.Log,
		Unheld: func(names []string, why error) {
			if why == nil {
				observer.Node(corev1.EventTypeNormal, policiesHeld, "the StartPolicies of the scope Cluster hold again")
				return
			}
			observer.Node(corev1.EventTypeWarning, policiesUnheld,
				observe.Cut("the StartPolicies "+strings.Join(names, ", ")+" hold no pod: "+why.Error(), mostMessage))
		},
	})
	keeping.Notice = func(policy, fault string) {
		observer.Node(corev1.EventTypeWarning, "PolicyNotEvaluated", "StartPolicy "+policy+" holds no pod: "+fault)
	}
	keeping.WatchNamespaces, keeping.Claims = c.namespaces.Need, c.claimer.SetPolicies
	keeping.ExtractFacts = func(extract func(*corev1.Pod) startpolicy.Facts) {
		c.watch.ExtractFacts(extract, relistWithin(c.summary.Nodes()))
	}
	return c.claimer.Wake
}

// follow makes a daemon follow configurations, policies and its node in the API server.
func (c *cluster) follow(d *Daemon) {
	o := d.options
	c.source = crd.NewSource(crd.SourceOptions{
		Configs: c.dynamic, Nodes: c.kube, NodeName: o.NodeName, Instance: o.Instance, Fallback: d.file.Config, Log: o.Log,
		OnChange: d.configure, OnNode: nodecondition.New(d.starts.Valve.ShutsDown, d.starts.Valve.Pressed).Observe,
		OnPanic: func(part string) { d.observer.CountPanic("crd " + part) },
	})
	c.policies = c.source.Policies(d.file.Policies, d.setPolicies)
	if o.StateDir != "" {
		c.source.Remember(o.lastGoodPath())
		c.policies.Remember(o.policiesPath())
	}
}

// run follows until ctx ends.
func (c *cluster) run(ctx context.Context, matcher *policies.Matcher) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, run := range []func(context.Context){
		c.watch.Run, c.source.Run, c.policies.Run, func(ctx context.Context) { c.namespaces.Run(ctx, matcher) },
	} {
		g.Go(func() error { run(ctx); return nil })
	}
	return g.Wait()
}

// The time within which a node lists its pods anew for a new policy: all nodes of a
// cluster do, and each at a random moment, so that 5,000 of them make 170 lists a second
// for 30 s, which are answered from the API server's memory. A cluster of fewer than 300
// nodes takes less than 30 s, at 10 lists a second: until its list, a node does not know
// which of its pods the policy selects, and admits others beyond a limit of those that run.
const (
	relistAll     = 30 * time.Second       // of 300 nodes or more
	relistPerNode = 100 * time.Millisecond // for each node, if they are fewer
)

// relistWithin returns that time for a cluster of this many nodes; 0: the number is not known.
func relistWithin(nodes int) time.Duration {
	return min(time.Duration(max(nodes, 1))*relistPerNode, relistAll)
}

// policiesWithin bounds how long the gate stays closed while the policies are not known.
const policiesWithin = 5 * time.Second

// awaitPolicies waits until it is known which policies there are; false: ctx ended
// before. With an API server that is away and nothing on disk, because the daemon
// before was of another version, that may never be: then it waits for a moment.
func (c *cluster) awaitPolicies(ctx context.Context, log logrus.FieldLogger) bool {
	select {
	case <-c.policies.Told():
	case <-time.After(policiesWithin):
		log.Warn("the API server has not told the StartPolicies yet: those that wait in the gate are not held by any until it does")
	case <-ctx.Done():
		return false
	}
	return true
}
