package plugin

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
)

// patience bounds waits for what has to happen; nothing depends on its length.
const patience = time.Minute

// knownPods plays the API server: it knows what a test tells it.
type knownPods struct {
	mu      sync.Mutex
	pods    map[string]podwatch.Pod
	away    bool
	changed func(podwatch.Pod, bool)
}

func (k *knownPods) Get(uid string) (podwatch.Pod, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	pod, ok := k.pods[uid]
	return pod, ok
}

func (k *knownPods) Await(ctx context.Context, uid string) (podwatch.Pod, bool) {
	for {
		if pod, ok := k.Get(uid); ok {
			return pod, true
		}
		select {
		case <-ctx.Done():
			return podwatch.Pod{}, false
		case <-time.After(time.Millisecond):
		}
	}
}

func (k *knownPods) Healthy() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.away
}

// tell makes a change of the pod known.
func (k *knownPods) tell(uid string, change func(*podwatch.Pod)) {
	k.mu.Lock()
	pod := k.pods[uid]
	change(&pod)
	k.pods[uid] = pod
	k.mu.Unlock()
	k.changed(pod, false)
}

func (k *knownPods) remove(uid string) {
	k.mu.Lock()
	pod := k.pods[uid]
	delete(k.pods, uid)
	k.mu.Unlock()
	k.changed(pod, true)
}

// node is a runtime in this process with the real plugin, the real gate and the
// real hook.
type node struct {
	t    *testing.T
	ctx  context.Context
	rt   *runtimetest.Runtime
	p    *pacer
	conn *connection
	pods *knownPods
	kept sync.WaitGroup
}

type nodeOption func(*Options)

// newNode starts a node with the configuration in YAML. Everything ends with the
// test.
func newNode(t *testing.T, config string, opts ...nodeOption) *node {
	t.Helper()
	dir, err := os.MkdirTemp("", "node") // t.TempDir is too long for a socket
	require.NoError(t, err)
	log := logrus.New()
	log.SetOutput(io.Discard)
	if testing.Verbose() {
		log.SetOutput(t.Output())
		log.SetLevel(logrus.DebugLevel)
	}
	o := Options{
		NodeName: "node", InCluster: true, NRIIndex: "05", RunDir: filepath.Join(dir, "run"), GatePath: hookPath,
		GateTimeout: 100 * time.Second, Gate: GateAuto, RefuseAt: RefuseAuto, Hold: 200 * time.Millisecond,
		NRISocket: filepath.Join(dir, "nri.sock"), ProcRoot: "/proc", CgroupRoot: "/sys/fs/cgroup", Log: log,
	}
	for _, opt := range opts {
		opt(&o)
	}
	n := &node{t: t, pods: &knownPods{pods: map[string]podwatch.Pod{}}}
	var source podSource = n.pods
	if o.Standalone() {
		source = nil
	}
	n.p = newPacer(o, source, newMetrics())
	n.pods.changed = n.p.podChanged
	parsed, err := crd.Parse([]byte("apiVersion: pod-pacemaker.io/v1alpha1\nkind: PacemakerConfig\nmetadata: {name: test}\n" + config))
	require.NoError(t, err)
	n.p.configure(time.Now(), crd.FromFile(parsed), 2)
	n.conn = newConnection(o, n.p)

	n.rt, err = runtimetest.New(runtimetest.Options{Dir: dir, Log: log})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	n.ctx = ctx
	require.NoError(t, n.rt.Start(ctx))
	listener, err := gate.Listen(o.SocketPath())
	require.NoError(t, err)
	var g errgroup.Group
	g.Go(func() error { return n.p.run(ctx) })
	g.Go(func() error { return gate.NewServer(n.p, log).Serve(ctx, listener) })
	g.Go(func() error { return n.conn.run(ctx) })
	t.Cleanup(func() {
		cancel()
		stopped := n.rt.Stop()
		n.kept.Wait()
		require.NoError(t, g.Wait())
		require.NoError(t, stopped)
		require.NoError(t, os.RemoveAll(dir))
	})
	require.NoError(t, n.rt.WaitPlugin(ctx, o.pluginName()))
	return n
}

// keep runs a pod as kubelet would, with quick retries, known to the API server
// as pod says.
func (n *node) keep(name string, pod podwatch.Pod, observe func(runtimetest.KubeletEvent), args ...string) (uid string, end context.CancelFunc) {
	uid = runtimetest.NewUID()
	pod.UID, pod.Namespace, pod.Name = uid, "default", name
	if pod.RestartPolicy == "" {
		pod.RestartPolicy = "Always"
	}
	pod.Containers = map[string]podwatch.Container{"app": {Kind: podwatch.App}}
	pod.Phase = corev1.PodPending
	n.pods.tell(uid, func(p *podwatch.Pod) { *p = pod })
	ctx, end := context.WithCancel(n.ctx)
	n.kept.Go(func() {
		err := n.rt.Keep(ctx, runtimetest.PodSpec{Namespace: "default", Name: name, UID: uid}, runtimetest.KubeletOptions{
			RetryInterval: 200 * time.Millisecond, BackOff: 100 * time.Millisecond, StopGrace: -1,
			RestartPolicy: runtimetest.RestartPolicy(pod.RestartPolicy), Observe: observe,
		}, runtimetest.ContainerSpec{Name: "app", Args: args})
		if err != nil && ctx.Err() == nil {
			n.t.Errorf("pod %s: %v", name, err)
		}
	})
	return uid, end
}

// ready tells that the containers of a pod are ready.
func (n *node) ready(uid, containerID string) {
	n.pods.tell(uid, func(p *podwatch.Pod) {
		p.Phase, p.ContainersReady, p.AllRunning = corev1.PodRunning, true, true
		p.Containers = map[string]podwatch.Container{"app": {Kind: podwatch.App, Running: true, ID: containerID}}
	})
}

// eventually waits for a condition.
func (n *node) eventually(what string, holds func() bool) {
	n.t.Helper()
	require.Eventually(n.t, holds, patience, 5*time.Millisecond, what)
}
