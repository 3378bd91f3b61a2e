package plugin

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttest "k8s.io/client-go/testing"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/kube/kubetest"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cores"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// writeConfig writes a configuration file.
func writeConfig(t *testing.T, config string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte("apiVersion: pod-pacemaker.io/v1alpha1\nkind: PacemakerConfig\nmetadata: {name: file}\n"+config), 0o600))
	return path
}

// addresses are the addresses that freeAddress returned.
var addresses sync.Map

// freeAddress returns a loopback address that only the calling test of this process uses.
func freeAddress(t *testing.T) string {
	t.Helper()
	for {
		own := net.IPv4(127, 83, byte(os.Getpid()>>8), byte(os.Getpid()))
		l, err := net.Listen("tcp", net.JoinHostPort(own.String(), "0"))
		require.NoError(t, err)
		require.NoError(t, l.Close())
		if _, given := addresses.LoadOrStore(l.Addr().String(), true); !given {
			return l.Addr().String()
		}
	}
}

// runs runs a daemon until the test ends; stop ends it before.
func (n *node) runs(d *Daemon) (stop func()) {
	ctx, cancel := context.WithCancel(n.ctx)
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	n.d = d
	n.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(n.t, <-done)
	})
	return n.stop
}

func TestTheDaemonRunsStandaloneAndServesAdministrators(t *testing.T) {
	t.Parallel()
	n := unconnectedNode(t, noLimit, standalone, with(func(o *Options) {
		o.ConfigFile = writeConfig(t, oneAtATime)
		o.HTTPAddress = freeAddress(t)
		o.Version = "v1.2.3"
	}))
	d, err := newWith(n.options, slowly())
	require.NoError(t, err)
	require.ErrorContains(t, d.Ready(), "not connected")
	require.NoError(t, n.rt.Start())
	n.runs(d)
	n.connected()
	n.eventually("the daemon is ready", func() bool { return n.get("/readyz") == http.StatusOK })
	assert.Equal(t, http.StatusOK, n.get("/healthz"))
	assert.Equal(t, http.StatusOK, n.get("/metrics"))

	p := n.strangePod("pod").runs()
	p.startsNow("app")
	s, err := admin.NewClient(n.options.AdminPath()).Status(n.ctx)
	require.NoError(t, err)
	assert.True(t, s.Ready)
	assert.Equal(t, "v1.2.3", s.Version)
	assert.True(t, s.Standalone)
	assert.Equal(t, "file", s.Config.Name)
	assert.Equal(t, 1, s.Limit)
	require.Len(t, s.Starting, 1)
	assert.Equal(t, "pod", s.Starting[0].Name)

	n.rt.Kill()
	n.eventually("the daemon is not ready any more", func() bool { return n.get("/readyz") == http.StatusServiceUnavailable })
	assert.Equal(t, http.StatusOK, n.get("/healthz"))
}

// get sends an HTTP request to the daemon, and returns the status code; 0: there was no response.
func (n *node) get(path string) int {
	req, err := http.NewRequestWithContext(n.ctx, http.MethodGet, "http://"+n.options.HTTPAddress+path, http.NoBody)
	require.NoError(n.t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(req)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	require.NoError(n.t, err)
	return answer.StatusCode
}

func TestNewRefusesAConfigurationThatIsInvalid(t *testing.T) {
	t.Parallel()
	o := goodOptions()
	o.InCluster = false
	o.ConfigFile = writeConfig(t, "spec: {throttleConfig: {maxConcurrent: {value: 0}}}")
	_, err := New(o)
	require.ErrorContains(t, err, "spec.throttleConfig.maxConcurrent.value")
	o.ConfigFile = "/nowhere/config.yaml"
	_, err = New(o)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestADaemonWithAnAPIServerRunsWithoutAnInvalidFile(t *testing.T) {
	t.Parallel()
	o := goodOptions()
	log, hook := logtest.NewNullLogger()
	o.InCluster, o.Log, o.Kubeconfig = false, log, filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(o.Kubeconfig, []byte(someCluster), 0o600))
	o.ConfigFile = writeConfig(t, "spec: {throttleConfig: {maxConcurrent: {}}}")
	d, err := New(o)
	require.NoError(t, err, "objects of the API server may select the node")
	require.ErrorIs(t, d.fileFault, crd.ErrInvalid)
	require.ErrorContains(t, d.fileFault, "spec.throttleConfig.maxConcurrent: Required value")
	require.Equal(t, logrus.ErrorLevel, hook.LastEntry().Level)
	require.Equal(t, d.fileFault.Error(), hook.LastEntry().Message)
}

func TestADaemonWithAnInvalidFileIsNotReadyWhileNoObjectSelectsTheNode(t *testing.T) {
	t.Parallel()
	c := unstartedAPINode(t)
	c.d.fileFault = errors.New("the file of --config is left out")
	c.starts()
	c.isWatched()
	c.eventually("an object is in force", func() bool { return c.d.Ready() == nil })
	require.NoError(t, c.dynamic.Resource(v1alpha1.Resource).Delete(t.Context(), "object", metav1.DeleteOptions{}))
	c.eventually("none is", func() bool { return errors.Is(c.d.Ready(), c.d.fileFault) })
	ready := c.d.nodeStatus().Conditions[0]
	assert.Equal(t, metav1.ConditionFalse, ready.Status)
	assert.Equal(t, c.d.fileFault.Error(), ready.Message)
}

func TestNewSaysWhatItsFileIgnores(t *testing.T) {
	t.Parallel()
	o := goodOptions()
	log, hook := logtest.NewNullLogger()
	o.InCluster, o.Log, o.ConfigFile = false, log, writeConfig(t, "spec: {nodeSelector: {canary: 'true'}}")
	_, err := New(o)
	require.NoError(t, err)
	warned := slices.ContainsFunc(hook.AllEntries(), func(e *logrus.Entry) bool {
		return e.Level == logrus.WarnLevel && strings.Contains(e.Message, "has nodeSelector, without effect")
	})
	require.True(t, warned)
}

func TestNewSaysWhatItNeedsOfTheCluster(t *testing.T) {
	t.Parallel()
	o := goodOptions()
	o.Kubeconfig = "/nowhere/kubeconfig"
	_, err := New(o)
	require.ErrorContains(t, err, "access to the API server")
}

// limitOf is a version of a PacemakerConfig object.
func limitOf(generation, value int64) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "object", "uid": "1", "generation": generation},
		"spec":     map[string]any{"throttleConfig": map[string]any{"maxConcurrent": map[string]any{"value": value}}},
	}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))
	return u
}

// apiNode is a daemon with an API server.
type apiNode struct {
	*node
	kube    *kubefake.Clientset
	dynamic *dynamicfake.FakeDynamicClient
}

// newAPINode starts a daemon with an API server that knows the pods.
func newAPINode(t *testing.T, pods ...runtime.Object) *apiNode {
	t.Helper()
	c := unstartedAPINode(t, pods...)
	c.starts()
	c.isWatched()
	return c
}

// isWatched waits until all watches run. Unlike a real API server, this one loses a change between a list and the watch
// that follows.
func (c *apiNode) isWatched() {
	c.t.Helper()
	c.eventually("the API server is watched", func() bool {
		watched := map[string]bool{}
		for _, a := range append(c.kube.Actions(), c.dynamic.Actions()...) {
			if a.GetVerb() == "watch" {
				watched[a.GetResource().Resource] = true
			}
		}
		return watched["pods"] && watched["nodes"] && watched[v1alpha1.Resource.Resource] && watched[v1alpha1.PolicyResource.Resource]
	})
}

// unstartedAPINode returns a daemon that does not run yet.
func unstartedAPINode(t *testing.T, pods ...runtime.Object) *apiNode {
	t.Helper()
	return unstartedAPINodeWith(t, nil, pods...)
}

func unstartedAPINodeWith(t *testing.T, opts []nodeOption, pods ...runtime.Object) *apiNode {
	t.Helper()
	n := unconnectedNode(t, noLimit, opts...)
	c := &apiNode{node: n}
	c.kube = kubefake.NewClientset(append(pods, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}})...)
	c.dynamic = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{
			v1alpha1.Resource: v1alpha1.Kind + "List", v1alpha1.NodeResource: v1alpha1.NodeKind + "List",
			v1alpha1.PolicyResource: v1alpha1.PolicyKind + "List",
		}, limitOf(1, 1))
	n.d = newDaemon(n.options, cores.Of(2), crd.Documents{}, &clients{kube: kubetest.Of(c.kube), dynamic: c.dynamic}, slowly())
	return c
}

func (c *apiNode) starts() {
	c.t.Helper()
	require.NoError(c.t, c.rt.Start())
	c.runs(c.d)
	c.connected()
}

func TestTheDaemonIsNotReadyBeforeItsConfigurationIsKnown(t *testing.T) {
	t.Parallel()
	c := unstartedAPINode(t)
	var mute atomic.Bool
	mute.Store(true)
	c.dynamic.PrependReactor("list", "*", func(clienttest.Action) (bool, runtime.Object, error) {
		return mute.Load(), nil, errors.New("the API server is away")
	})
	c.starts()
	require.ErrorIs(t, c.d.Ready(), errNoConfiguration)
	answers := func() bool {
		_, err := os.Lstat(c.options.SocketPath())
		return err == nil
	}
	assert.Never(t, answers, 200*time.Millisecond, 10*time.Millisecond, "hooks of an earlier daemon would be let go")
	mute.Store(false)
	c.eventually("the daemon is ready", func() bool { return c.d.Ready() == nil })
	c.eventually("the gate answers", answers)
}

func TestAnInvalidObjectLeavesTheLastGoodOneInForce(t *testing.T) {
	t.Parallel()
	c := newAPINode(t)
	inForce := func() int64 { return c.d.Status().Config.Generation }
	c.eventually("the first version is in force", func() bool { return inForce() == 1 })
	assert.Equal(t, 1, c.d.Status().Limit)

	hook := logtest.NewLocal(c.options.Log)
	update := func(u *unstructured.Unstructured) {
		_, err := c.dynamic.Resource(v1alpha1.Resource).Update(c.ctx, u, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	update(limitOf(2, 0))
	c.eventually("the log says why the second version is not in force", func() bool {
		for _, e := range hook.AllEntries() {
			line, err := e.String()
			require.NoError(t, err)
			if strings.Contains(line, "maxConcurrent.value") {
				return true
			}
		}
		return false
	})
	assert.Equal(t, int64(1), inForce())
	update(limitOf(3, 5))
	c.eventually("the third version is in force", func() bool { return inForce() == 3 })
	assert.Equal(t, 5, c.d.Status().Limit)
}

func TestAPodOfTheAPIServerIsPacedAndEndsWhenItIsReady(t *testing.T) {
	t.Parallel()
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), ResourceVersion: "1"},
			Spec: corev1.PodSpec{
				NodeName: "node", RestartPolicy: corev1.RestartPolicyAlways,
				Containers: []corev1.Container{{Name: "app", ReadinessProbe: &corev1.Probe{}}},
			},
		}
	}
	first := pod("first")
	c := newAPINode(t, first, pod("second"))
	c.eventually("the configuration is in force", func() bool { return c.d.Status().Config.Generation == 1 })
	c.eventually("the pods are known", func() bool { return c.d.cluster.watch.Healthy() })

	holder := c.known("first").runs()
	ctr := holder.startsNow("app")
	a := c.known("second").runs().waitsAtGate("app")
	first.ResourceVersion = "2"
	first.Status = corev1.PodStatus{
		Phase:      corev1.PodRunning,
		Conditions: []corev1.PodCondition{{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "app", ContainerID: "containerd://" + ctr.ID(),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
		}},
	}
	_, err := c.kube.CoreV1().Pods("default").UpdateStatus(c.ctx, first, metav1.UpdateOptions{})
	require.NoError(t, err)
	holder.becomes(throttle.Started, reasons.Ready)
	a.succeeds()
	s := c.d.Status()
	assert.False(t, s.Standalone)
	require.NotNil(t, s.PodWatch)
	assert.True(t, s.PodWatch.Healthy)
}

// known returns a pod that the API server knows; its UID is its name.
func (n *node) known(name string) *testPod {
	p := n.strangePod(name)
	p.uid, p.spec.UID = name, name
	return p
}
