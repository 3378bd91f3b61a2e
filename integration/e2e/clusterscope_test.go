//go:build e2e && full

package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/integration/chart"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/leases"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
)

// simulated is a node with a real daemon. The test simulates its runtime and kubelet. Its pods and
// its Node are in the real API server.
type simulated struct {
	*daemon
	t       *testing.T
	fleet   *fleet
	name    string
	runtime *runtimetest.Runtime
}

// fleet is several simulated nodes that share one policy.
type fleet struct {
	t         *testing.T
	namespace string
	nodes     []*simulated
	ctx       context.Context
	kept      sync.WaitGroup

	mu       sync.Mutex
	starting int
	most     int      // highest number of pods starting at a time
	order    []string // node of each started pod, in order
	uncount  map[string]bool
}

// grantClusterScope gives the shipped service account the chart's rights for the scope Cluster until the
// test ends.
func grantClusterScope(t *testing.T) {
	t.Helper()
	files, err := chart.Render(chart.Release{Name: "pod-pacemaker", Namespace: "pod-pacemaker"}, map[string]any{
		"startPolicies": map[string]any{"monitoring": true, "clusterScope": true},
	})
	require.NoError(t, err)
	applied(t, files["slots.yaml"])
}

// newFleet starts the nodes and creates the policy with that number of slots.
func newFleet(t *testing.T, nodes, slots int) *fleet {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	f := &fleet{t: t, namespace: namespace(t), ctx: ctx, uncount: map[string]bool{}}
	asServiceAccount(t)
	grantClusterScope(t)
	for i := range nodes {
		f.nodes = append(f.nodes, f.newNode(fmt.Sprintf("sim-%s-%d", unique(), i)))
	}
	t.Cleanup(func() {
		cancel()
		for _, n := range f.nodes {
			assert.NoError(t, n.runtime.Stop())
		}
		f.kept.Wait()
	})
	for _, n := range f.nodes {
		n.enforce(t, "registry-"+f.namespace, fmt.Sprintf(
			"{scope: Cluster, selector: {terms: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}}]}, limits: {starting: {pods: %d}}}", f.namespace, slots))
	}
	return f
}

func (f *fleet) newNode(name string) *simulated {
	t := f.t
	t.Helper()
	api := node.Client().CoreV1().Nodes()
	_, err := api.Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Unschedulable: true},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, api.Delete(context.Background(), name, metav1.DeleteOptions{})) })
	dir, err := os.MkdirTemp(node.Dir, "sim")
	require.NoError(t, err)
	n := &simulated{t: t, fleet: f, name: name}
	n.runtime, err = runtimetest.New(runtimetest.Options{Dir: dir, RequestTimeout: 30 * time.Second})
	require.NoError(t, err)
	require.NoError(t, n.runtime.Start())
	access := shippedAccess(t, node.Kubeconfig, name)
	n.daemon = startDaemonWith(t, "--kubeconfig", access, "--node-name", name, "--nri-socket", n.runtime.Socket())
	return n
}

// run adds a pod to the node. The pod is ready readyAfter its process began, or never if readyAfter
// is negative.
func (n *simulated) run(name string, readyAfter time.Duration) {
	f := n.fleet
	api := node.Client().CoreV1().Pods(f.namespace)
	pod, err := api.Create(f.ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{NodeName: n.name, Containers: []corev1.Container{{
			Name: "main", Image: "example.test/none", ReadinessProbe: probe(corev1.Probe{}),
		}}},
	}, metav1.CreateOptions{})
	require.NoError(n.t, err)
	n.t.Cleanup(func() {
		now := int64(0)
		assert.NoError(n.t, api.Delete(context.Background(), name, metav1.DeleteOptions{GracePeriodSeconds: &now}))
	})
	f.kept.Go(func() {
		if id := n.keep(pod); id != "" {
			n.started(pod, id, readyAfter)
		}
	})
}

// keep asks for the pod's container again and again, as kubelet does, until it has started. It returns its ID, or "" if
// the test has ended.
func (n *simulated) keep(pod *corev1.Pod) (id string) {
	ctx := n.fleet.ctx
	spec := runtimetest.PodSpec{
		Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID),
		CgroupParent: "/kubepods/burstable/pod" + string(pod.UID), Annotations: map[string]string{"kubernetes.io/config.source": "api"},
	}
	var sandbox *runtimetest.Pod
	for ctx.Err() == nil {
		var err error
		if sandbox == nil {
			sandbox, err = n.runtime.RunPod(ctx, spec)
		}
		if err == nil {
			c, err := sandbox.CreateContainer(ctx, runtimetest.ContainerSpec{Name: "main", Args: []string{"/bin/sleep", "3600"}})
			if err == nil && c.Start(ctx) == nil {
				return c.ID()
			}
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
	return ""
}

// started counts the start and makes the pod ready after a time, as kubelet would.
func (n *simulated) started(pod *corev1.Pod, id string, readyAfter time.Duration) {
	f := n.fleet
	f.count(n.name, 1)
	if readyAfter < 0 {
		return
	}
	select {
	case <-time.After(readyAfter):
	case <-f.ctx.Done():
		return
	}
	f.count(n.name, -1)
	yes := true
	pod = pod.DeepCopy()
	pod.ResourceVersion = ""
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "main", Ready: true, Started: &yes, ContainerID: "containerd://" + id,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}}
	for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue})
	}
	_, err := node.Client().CoreV1().Pods(f.namespace).UpdateStatus(f.ctx, pod, metav1.UpdateOptions{})
	if f.ctx.Err() == nil {
		assert.NoError(n.t, err)
	}
}

func (f *fleet) count(name string, by int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.uncount[name] {
		return
	}
	if by > 0 {
		f.order = append(f.order, name)
	}
	f.starting += by
	f.most = max(f.most, f.starting)
}

// began returns the node of each started pod, in order, and the highest number of pods starting at
// a time.
func (f *fleet) began() ([]string, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.order), f.most
}

// holders returns the holders of the slots according to the API server.
func (f *fleet) holders() (holders []string) {
	list, err := node.Client().CoordinationV1().Leases("pod-pacemaker").List(f.t.Context(), metav1.ListOptions{LabelSelector: leases.SlotLabel})
	require.NoError(f.t, err)
	for _, l := range list.Items {
		holders = append(holders, *l.Spec.HolderIdentity)
	}
	return holders
}

// Three daemons share two slots through one real API server: at most two pods hold slots or start,
// every node gets turns, and no slot stays taken at the end.
func TestThreeNodesShareTheSlotsOfTheCluster(t *testing.T) {
	f := newFleet(t, 3, 2)
	const each = 5
	for i := range each {
		for _, n := range f.nodes {
			n.run(fmt.Sprintf("%s-%d", n.name, i), 500*time.Millisecond)
		}
	}
	mostHeld := 0
	eventually(t, "all pods have started", func() bool {
		held := len(f.holders())
		require.LessOrEqual(t, held, 2)
		mostHeld = max(mostHeld, held)
		began, _ := f.began()
		return len(began) == 3*each
	})
	began, most := f.began()
	assert.LessOrEqual(t, most, 2)
	assert.Equal(t, 2, mostHeld, "highest number of slots held")
	for _, n := range f.nodes {
		assert.Contains(t, began[:2*each], n.name, "nodes with the first starts")
		assert.Empty(t, n.policy(t, "registry-"+f.namespace).Fault)
	}
	eventually(t, "all slots are free", func() bool { return len(f.holders()) == 0 })
	figure(t, "order of the turns %s", strings.Join(began, " "))
}
