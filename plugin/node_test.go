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

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cni"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cores"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/nri"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// testTimeout bounds the waits for necessary events. No result depends on its length.
const testTimeout = time.Minute

// Configurations for tests.
const (
	oneAtATime = "spec: {throttleConfig: {maxConcurrent: {value: 1}}}"
	noLimit    = "spec: {}"

	// By the rate, which holds no pod of a test, hooks expect their turns so late that none leaves by itself while no
	// daemon runs, however long that takes.
	oneAtATimeLate = "spec: {throttleConfig: {maxConcurrent: {value: 1}, rateLimit: {fillFactor: 1h, burst: 100}}}"
	twoAtATimeLate = "spec: {throttleConfig: {maxConcurrent: {value: 2}, rateLimit: {fillFactor: 1h, burst: 100}}}"
)

// node is a runtime in this process with the real plugin, the real gate and the real hook.
type node struct {
	t       testing.TB
	ctx     context.Context
	options Options
	runtime runtimetest.Options
	config  crd.Effective
	tune    func(*tuning)
	rt      *runtimetest.Runtime
	pods    *knownPods
	// stopping is the source of the pods that are being stopped; nil if there is none.
	stopping nri.StopSource
	kept     sync.WaitGroup

	// The current daemon.
	d    *Daemon
	stop func()
}

// nodeOption changes a node before it starts.
type nodeOption func(*node)

// with changes the daemon's options.
func with(change func(*Options)) nodeOption { return func(n *node) { change(&n.options) } }

// onRuntime changes the runtime.
func onRuntime(change func(*runtimetest.Options)) nodeOption {
	return func(n *node) { change(&n.runtime) }
}

// tuned changes the tuning of every daemon.
func tuned(change func(*tuning)) nodeOption { return func(n *node) { n.tune = change } }

// holdsLong makes handlers hold for as long as a test takes.
var holdsLong nodeOption = func(n *node) {
	n.options.Hold = maxHold
	n.tune = func(r *tuning) { r.savedHold, r.hold = testTimeout, testTimeout }
}

// slowly returns the tuning of a daemon that behaves the same on a slow machine: it does not measure starts without
// progress, whose slots it would lend after 10 s, and ends no start because its pod has run for 10 s.
func slowly() tuning {
	r := defaultTuning()
	r.timing.Stalls.Every, r.timing.RunFor = 24*time.Hour, 24*time.Hour
	return r
}

// standalone makes the daemon use no API server.
func standalone(n *node) { n.options.InCluster = false }

// newNode starts a node with the configuration in YAML. Everything ends with the test.
func newNode(t testing.TB, config string, opts ...nodeOption) *node {
	t.Helper()
	n := unconnectedNode(t, config, opts...)
	require.NoError(t, n.rt.Start())
	n.startDaemon()
	n.connected()
	return n
}

// unconnectedNode returns a node on which nothing runs yet.
func unconnectedNode(t testing.TB, config string, opts ...nodeOption) *node {
	t.Helper()
	dir, err := os.MkdirTemp("", "node") // t.TempDir is too long for a socket
	require.NoError(t, err)
	log := logrus.New()
	log.SetOutput(io.Discard)
	if testing.Verbose() {
		log.SetOutput(outputOf(t))
		log.SetLevel(logrus.DebugLevel)
	}
	parsed, err := crd.Parse([]byte("apiVersion: pod-pacemaker.io/v1alpha1\nkind: PacemakerConfig\nmetadata: {name: test}\n" + config))
	require.NoError(t, err)
	n := &node{
		t: t, pods: &knownPods{pods: map[string]podwatch.Pod{}}, config: crd.FromFile(parsed.Config),
		options: Options{
			NodeName: "node", InCluster: true, NRIIndex: "05", RunDir: filepath.Join(dir, "run"), GatePath: hookPath,
			GateTimeout: time.Hour, Gate: waiting.GateAuto, CNI: cni.UseAuto, RefuseAt: waiting.RefuseAuto, Hold: 200 * time.Millisecond,
			NRISocket: filepath.Join(dir, "nri.sock"), ProcRoot: "/proc", CgroupRoot: "/sys/fs/cgroup", Log: log,
		},
		runtime: runtimetest.Options{Dir: dir, Log: log, RequestTimeout: testTimeout},
		tune:    func(*tuning) {},
		stop:    func() {},
	}
	for _, opt := range opts {
		opt(n)
	}
	require.NoError(t, n.options.Validate())
	n.rt, err = runtimetest.New(n.runtime)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	n.ctx = ctx
	t.Cleanup(func() {
		cancel()
		stopped := n.rt.Stop()
		n.kept.Wait()
		n.stop()
		require.NoError(t, stopped)
		require.NoError(t, os.RemoveAll(dir))
	})
	return n
}

// outputOf returns t's output until all other clean-ups of the test have run. Requests that ttrpc serves can outlive
// their connection, and a test that has ended must get no output.
func outputOf(t testing.TB) io.Writer {
	var mu sync.Mutex
	over := false
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
	})
	return writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return len(p), nil
		}
		return t.Output().Write(p)
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// startDaemon starts a daemon on the node's sockets, with the node's configuration in force.
func (n *node) startDaemon() {
	r := slowly()
	if !n.options.Standalone() {
		r.pods = n.pods
	}
	r.firstPause = 200 * time.Millisecond // tests cut connections and must not wait long for the next one
	r.stops = n.stopping
	n.tune(&r)
	d := newDaemon(n.options, cores.Of(2), crd.Documents{}, nil, r)
	n.pods.follow(func(pod podwatch.Pod, deleted bool) { d.starts.PodChanged(time.Now(), pod, deleted) })
	d.applier.configure(n.config)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.pace(ctx) }()
	n.d = d
	n.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(n.t, <-done)
	})
}

// connected waits until the daemon gets the runtime's events.
func (n *node) connected() {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.ctx, testTimeout)
	defer cancel()
	require.NoError(n.t, n.rt.WaitPlugin(ctx, n.options.pluginName()))
}

// stopDaemon ends the daemon, and waits until the runtime has noticed.
func (n *node) stopDaemon() {
	n.t.Helper()
	n.stop()
	ctx, cancel := context.WithTimeout(n.ctx, testTimeout)
	defer cancel()
	require.NoError(n.t, n.rt.WaitPluginGone(ctx, n.options.pluginName()))
}

// reconfigure puts another configuration in force.
func (n *node) reconfigure(config string) {
	n.t.Helper()
	parsed, err := crd.Parse([]byte("apiVersion: pod-pacemaker.io/v1alpha1\nkind: PacemakerConfig\nmetadata: {name: test}\n" + config))
	require.NoError(n.t, err)
	n.config = crd.FromFile(parsed.Config)
	n.d.applier.configure(n.config)
}

// eventually waits for a condition.
func (n *node) eventually(what string, holds func() bool) {
	n.t.Helper()
	require.Eventually(n.t, holds, testTimeout, 2*time.Millisecond, what)
}

// names returns the waiting pods and the pods that hold a slot, each in order.
func (n *node) names() (waiting, starting []string) {
	s := n.d.starts.Snapshot(time.Now())
	for _, v := range s.Waiting {
		waiting = append(waiting, observe.PodName(v.Name).Name)
	}
	for _, v := range s.Starting {
		if v.Slot {
			starting = append(starting, observe.PodName(v.Name).Name)
		}
	}
	return waiting, starting
}

// slotsFree waits until no pod holds a slot or waits.
func (n *node) slotsFree() {
	n.t.Helper()
	n.eventually("no pod waits or starts", func() bool {
		s := n.d.starts.Snapshot(time.Now())
		return len(s.Waiting) == 0 && len(s.Starting) == 0
	})
}

// noHookIsLeft waits until no process of a hook lives.
func (n *node) noHookIsLeft() {
	n.t.Helper()
	n.eventually("no hook is left", func() bool { return n.rt.Hooks() == 0 })
}

// view returns the limiter's view of a pod.
func (n *node) view(uid string) throttle.TicketView {
	v, _ := n.d.starts.View(time.Now(), uid)
	return v
}
