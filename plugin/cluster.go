package plugin

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/nodecondition"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/report"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/wholefile"
)

// How many requests the daemon sends a second in the long run, and at once: as many as kubelet. The requests for
// Kubernetes' own kinds and those for the custom resources count separately. Each start under a policy of the scope
// Cluster takes two, and each slot that is held one in about nine seconds. A sum over 5,000 nodes takes 100, and two for
// each policy. The default of client-go, 5 a second, is too few for both.
const (
	requestsPerSecond = 50
	requestsBurst     = 100
)

// clients are the clients of the API server.
type clients struct {
	kube    kube.Interface
	dynamic dynamic.Interface
}

// newClients returns the clients of the API server. It sends no request.
func newClients(o Options) (*clients, error) {
	access, err := kube.Access(o.Kubeconfig, "pod-pacemaker/"+o.Version)
	if err != nil {
		return nil, err
	}
	access.QPS, access.Burst = requestsPerSecond, requestsBurst
	dyn, err := dynamic.NewForConfig(access)
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	// Custom resources are not served as protobuf. Pods are, for half the CPU.
	access.ContentType = runtime.ContentTypeProtobuf
	own, err := kube.New(access)
	if err != nil {
		return nil, err
	}
	return &clients{kube: own, dynamic: dyn}, nil
}

// cluster is the daemon's view of the API server, and what reports to it.
type cluster struct {
	clients
	recorder   *observe.Recorder
	watch      *podwatch.Watch
	reporter   *report.Reporter // it also knows the number of nodes
	namespaces *policies.Namespaces
}

// newCluster returns a cluster, and an observer that writes events to its API server.
func newCluster(o Options, c clients) (*cluster, *observe.Observer) {
	recorder := observe.NewRecorder(c.kube, o.NodeName, o.Instance)
	reporter := report.New(report.Options{
		API: c.dynamic, Leases: c.kube.Leases(o.Namespace), NodeName: o.NodeName, Instance: o.Instance,
		Object: o.nameOnNode(), Lease: o.SummaryLease(), Log: o.Log,
	})
	observer := observe.New(observe.Options{Log: o.Log, Events: recorder, Nodes: reporter.Nodes})
	return &cluster{
		clients: c, recorder: recorder, reporter: reporter, namespaces: policies.NewNamespaces(c.kube, o.Log),
		watch: podwatch.New(podwatch.Options{
			Client: c.kube, NodeName: o.NodeName, Log: o.Log, OnPanic: observer.Panicked,
		}),
	}, observer
}

// newSource returns the source of the configuration and the StartPolicies in force, which also reads the conditions of the
// node; nil when standalone.
func newSource(o Options, c *clients, file crd.Documents, to *applier) *crd.Source {
	if c == nil {
		return nil
	}
	return crd.NewSource(crd.SourceOptions{
		Configs: c.dynamic, Nodes: c.kube, NodeName: o.NodeName, Instance: o.Instance, Log: o.Log,
		ConfigsPath: o.lastGoodPath(), PoliciesPath: o.policiesPath(), Write: keepFile, Fallback: file.Config, FilePolicies: file.Policies,
		OnChange: to.configure, OnPolicies: to.setPolicies, OnNode: nodecondition.New(to.starts.SetShutdown, to.starts.SetPressure).Observe,
		OnPanic: to.observer.Panicked,
	})
}

// keepFile implements [crd.SourceOptions.Write]. It leaves a file that has the content already.
func keepFile(path string, content []byte) error {
	_, err := wholefile.Ensure(path, content, 0o600)
	return err
}

// policiesChanged watches what the policies need to know.
func (c *cluster) policiesChanged(changes policies.Changes) {
	if changes.NeedsNamespaces {
		c.namespaces.Need()
	}
	if changes.NewFacts {
		c.watch.ExtractFacts(changes.Extract, relistWithin(c.reporter.Nodes()))
	}
}

// run follows the API server until ctx ends.
func (c *cluster) run(ctx context.Context, source *crd.Source, namespaces policies.NamespaceUser) {
	var running sync.WaitGroup
	running.Go(func() { c.watch.Run(ctx) })
	running.Go(func() { source.Run(ctx) })
	running.Go(func() { c.namespaces.Run(ctx, namespaces) })
	running.Wait()
}

// unread returns what cannot be read in the API server now.
func (c *cluster) unread(source *crd.Source) (all []admin.Unread) {
	for _, f := range append(source.Faults(), c.watch.Fault(), c.namespaces.Fault()) {
		if f != nil {
			all = append(all, admin.Unread{What: f.What, Since: f.Since, Why: f.Err.Error()})
		}
	}
	return all
}

// The time within which every node of the cluster lists its pods again for a new policy, each at a random moment. 5,000
// nodes send 170 lists a second for 30 s, which the API server answers from its memory. Fewer than 300 nodes send 10
// lists a second and take less time. Until its list, a node does not know which of its pods the policy selects, and may
// admit others beyond a limit on running pods.
const (
	relistAll     = 30 * time.Second       // of 300 nodes or more
	relistPerNode = 100 * time.Millisecond // for each node of fewer
)

// relistWithin returns the time in which this many nodes list.
func relistWithin(nodes int) time.Duration {
	return min(time.Duration(nodes)*relistPerNode, relistAll)
}

// policiesWithin is how long the gate answers no hook, at most, while the policies are not known.
const policiesWithin = 5 * time.Second

// awaitPolicies blocks until the policies are known, and returns false if ctx ends before. If the API server is away and
// the state folder holds no policies that this version can read, they may never be known. So it waits for a few seconds
// only.
func awaitPolicies(ctx context.Context, source *crd.Source, log logrus.FieldLogger) bool {
	select {
	case <-source.PoliciesReady():
	case <-time.After(policiesWithin):
		log.Warn("the StartPolicies are not known, because the API server has not sent them yet: until it does, they hold no pod in the gate")
	case <-ctx.Done():
		return false
	}
	return true
}
