//go:build e2e && full

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/kube/kubetest"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/report"
)

// stampede simulates a cluster of many nodes. Only the daemons' requests to the API server are
// real: it runs the parts of the daemon that send them, once for every node.
type stampede struct {
	nodes   int
	busy    atomic.Bool // every daemon always has something new to report
	changes atomic.Int32
	sums    []*report.Reporter
}

// The requests of 500 daemons cost the API server no more than package plugin/report derives, by
// the API server's own metrics: with something new to report on every node all the time, and with
// nothing to report.
func TestStampede(t *testing.T) {
	const many, config, settle, window = 500, "stampede", 30 * time.Second, 40 * time.Second
	applyConfig(t, config, "{nodeSelector: {stampede: member}, throttleConfig: {maxConcurrent: {value: 2}}}")
	applied(t, "apiVersion: pod-pacemaker.io/v1alpha1\nkind: StartPolicy\nmetadata: {name: "+config+"}\n"+
		"spec: {nodeSelector: {stampede: member}, selector: {terms: [{podSelector: {}}]}, limits: {running: {pods: 100000}}}\n")
	s := &stampede{nodes: many}
	s.makeNodes(t)
	s.busy.Store(true)
	s.run(t, config)
	summed := func() v1alpha1.StartPolicyStatus {
		return object[v1alpha1.StartPolicy](t, "startpolicy", config).Status
	}
	eventually(t, "the policy sums up all nodes", func() bool { return summed().Nodes == many })
	eventually(t, "every daemon knows the size of the cluster", func() bool {
		for _, summary := range s.sums {
			if summary.Nodes() < many { // the lab's own node may report, too
				return false
			}
		}
		return true
	})
	time.Sleep(settle) // the daemons have just learnt the size
	watches := readAPIMetrics(t)
	for resource, most := range map[string]float64{
		"pods": many, "nodes": many, "pacemakerconfigs": many, "startpolicies": many, "pacemakernodes": 1,
	} {
		open := watches.sum("apiserver_longrunning_requests", "verb", "WATCH", "resource", resource)
		figure(t, "%d daemons: %.0f watches of %s are open, including a few of other parts of the cluster", many, open, resource)
		assert.LessOrEqual(t, open, most+10, "watches of %s", resource)
	}

	busy := s.count(t, window)
	figure(t, "%d daemons, each with something new to report all the time, per second: %s", many, busy)
	assert.LessOrEqual(t, busy.patches, many/10.0*1.1, "writes a second: a node writes every 10 s at most")
	assert.GreaterOrEqual(t, busy.patches, many/10.0/2, "writes a second: fewer show no load")
	assert.InDelta(t, busy.patches, busy.events, busy.patches/2, "watch events: only the garbage collector watches the PacemakerNodes")
	assert.LessOrEqual(t, busy.events*busy.eventBytes, 100*1500.0)
	assert.LessOrEqual(t, busy.sums, 2/20.0, "writes of the policy's status")
	assert.LessOrEqual(t, busy.leaseReads, many/10.0)
	assert.LessOrEqual(t, busy.leaseWrites, 1.0, "writes of Leases a second, including those of kubelet and the API server")

	s.busy.Store(false)
	time.Sleep(settle) // until the last report is written
	quiet := s.count(t, window)
	figure(t, "%d daemons with nothing to report, per second: %s", many, quiet)
	assert.LessOrEqual(t, quiet.patches, many/600.0*1.5, "writes a second: signs of life")
	assert.LessOrEqual(t, quiet.sums, 2/20.0)
	status := summed()
	assert.True(t, meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady), "%v", status.Conditions)
	assert.EqualValues(t, many, status.Waiting, "waiting pods, one on each node")
}

// makeNodes creates the Node objects. The dependent objects are removed with them.
func (s *stampede) makeNodes(t *testing.T) {
	t.Helper()
	api := node.Client().CoreV1().Nodes()
	t.Cleanup(func() {
		ctx := context.Background()
		assert.NoError(t, api.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "stampede"}))
		assert.Eventually(t, func() bool {
			left, err := node.Kubectl(ctx, "get", "pacemakernodes", "-o", "name")
			return err == nil && !bytes.Contains(left, []byte("/stampede-"))
		}, testTimeout, time.Second, "the PacemakerNodes are removed with their Nodes")
	})
	for i := range s.nodes {
		_, err := api.Create(t.Context(), &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: s.name(i), Labels: map[string]string{"stampede": "member"}},
			Spec:       corev1.NodeSpec{Unschedulable: true},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
}

func (s *stampede) name(i int) string { return fmt.Sprintf("stampede-%d", i) }

// run starts the reporting parts of a daemon for every node, until the test ends.
func (s *stampede) run(t *testing.T, config string) {
	t.Helper()
	access := rest.CopyConfig(node.RESTConfig())
	access.QPS = -1 // in a cluster each daemon has its own rate limit; these share a client
	kube, err := kubernetes.NewForConfig(access)
	require.NoError(t, err)
	objects, err := dynamic.NewForConfig(access)
	require.NoError(t, err)
	log := logrus.New()
	log.SetOutput(io.Discard)
	panicked := func(string, any, logrus.Fields) {}
	ctx, cancel := context.WithCancel(context.Background())
	var all errgroup.Group
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, all.Wait())
	})
	for i := range s.nodes {
		name := s.name(i)
		var inForce atomic.Pointer[crd.Effective]
		inForce.Store(&crd.Effective{})
		source := crd.NewSource(crd.SourceOptions{
			Configs: objects, Nodes: kubetest.Of(kube), NodeName: name, Log: log,
			OnChange: func(e crd.Effective) { inForce.Store(&e) }, OnPolicies: func([]*v1alpha1.StartPolicy) {}, OnNode: func(*corev1.Node) {}, OnPanic: panicked,
		})
		all.Go(func() error { source.Begin(); source.Run(ctx); return nil })
		pods := podwatch.New(podwatch.Options{
			Client: kubetest.Of(kube), NodeName: name, Log: log, OnPanic: panicked,
		})
		pods.OnChange(func(podwatch.Pod, bool) {})
		all.Go(func() error { pods.Run(ctx); return nil })
		reporter := report.New(report.Options{
			API: objects, Leases: kubetest.Of(kube).Leases("default"), NodeName: name, Object: name, Lease: "pod-pacemaker-summary", Log: log,
		})
		s.sums = append(s.sums, reporter)
		facts := report.Facts{
			NodeUID: source.NodeUID,
			Status:  func() v1alpha1.PacemakerNodeStatus { return s.status(*inForce.Load(), config) },
		}
		all.Go(func() error { reporter.RunNode(ctx, facts); return nil })
		all.Go(func() error {
			reporter.RunSummary(ctx, report.Summed{Policies: source.KnownPolicies, Configs: source.KnownConfigs})
			return nil
		})
	}
}

// status returns what a daemon reports while pods start on its node.
func (s *stampede) status(e crd.Effective, policy string) v1alpha1.PacemakerNodeStatus {
	since := metav1.NewTime(time.Unix(1700000000, 0))
	status := v1alpha1.PacemakerNodeStatus{
		Version: "v0.0.0-e2e", Config: e.Name, Origin: string(e.Origin), ConfigGeneration: e.Generation, Mode: e.Spec.GetMode(),
		Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPaced},
			{Type: v1alpha1.ConditionConnected, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonConnected},
		},
		WaitMethod: v1alpha1.WaitGate,
		Waiting:    1, Starting: 2, Limit: 2, WaitingSince: &since, HeldBy: "Concurrency",
	}
	if s.busy.Load() {
		status.Waiting = 2 + s.changes.Add(1)%1000
	}
	status.Policies = []v1alpha1.NodePolicy{{
		Name: policy, Generation: 1, GroupCount: 1, Groups: []v1alpha1.PolicyGroup{{Waiting: status.Waiting}},
	}}
	return status
}

// costs are average numbers per second.
type costs struct {
	patches, sums, events, eventBytes, policyEvents, leaseReads, leaseWrites float64
}

func (c costs) String() string {
	return fmt.Sprintf("%.1f writes of PacemakerNodes, %.1f watch events of them of %.2f KB each, %.3f writes of the policy's status, "+
		"%.1f watch events of policies, %.1f reads and %.2f writes of the Lease",
		c.patches, c.events, c.eventBytes/1000, c.sums, c.policyEvents, c.leaseReads, c.leaseWrites)
}

func (s *stampede) count(t *testing.T, over time.Duration) costs {
	t.Helper()
	begin, before := time.Now(), readAPIMetrics(t)
	time.Sleep(over) // the counted requests depend only on time
	after := readAPIMetrics(t)
	seconds := time.Since(begin).Seconds()
	grown := func(name string, labels ...string) float64 {
		return after.sum(name, labels...) - before.sum(name, labels...)
	}
	const requests, sizes = "apiserver_request_total", "apiserver_watch_events_sizes"
	c := costs{
		patches:      grown(requests, "verb", "PATCH", "resource", "pacemakernodes") / seconds,
		sums:         grown(requests, "verb", "PATCH", "resource", "startpolicies") / seconds,
		events:       grown(sizes+"_count", "resource", "pacemakernodes") / seconds,
		policyEvents: grown(sizes+"_count", "resource", "startpolicies") / seconds,
		leaseReads:   grown(requests, "verb", "GET", "resource", "leases") / seconds,
		leaseWrites:  grown(requests, "verb", "PUT", "resource", "leases") / seconds,
	}
	if c.events > 0 {
		c.eventBytes = grown(sizes+"_sum", "resource", "pacemakernodes") / seconds / c.events
	}
	return c
}

// apiMetrics are the metrics of the API server at one moment.
type apiMetrics []metricSample

type metricSample struct {
	name   string
	labels map[string]string
	value  float64
}

func readAPIMetrics(t *testing.T) (all apiMetrics) {
	t.Helper()
	text, err := node.Client().CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	require.NoError(t, err)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	require.NoError(t, err)
	for name, family := range families {
		for _, m := range family.Metric {
			labels := map[string]string{}
			for _, l := range m.Label {
				labels[l.GetName()] = l.GetValue()
			}
			add := func(name string, value float64) { all = append(all, metricSample{name, labels, value}) }
			switch {
			case m.Histogram != nil:
				add(name+"_sum", m.Histogram.GetSampleSum())
				add(name+"_count", float64(m.Histogram.GetSampleCount()))
			case m.Counter != nil:
				add(name, m.Counter.GetValue())
			case m.Gauge != nil:
				add(name, m.Gauge.GetValue())
			}
		}
	}
	return all
}

// sum adds up the samples with that name and these labels, given as name and value in turn.
func (a apiMetrics) sum(name string, labels ...string) (sum float64) {
next:
	for _, s := range a {
		if s.name != name {
			continue
		}
		for i := 0; i < len(labels); i += 2 {
			if s.labels[labels[i]] != labels[i+1] {
				continue next
			}
		}
		sum += s.value
	}
	return sum
}
