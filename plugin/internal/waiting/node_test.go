package waiting

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// node is a Chooser on a node on which one pod starts at a time, in a bubble of synctest. The test takes the steps of
// the runtime, of kubelet and of the waiting processes.
type node struct {
	*Chooser
	t     *testing.T
	watch *podWatch
	log   *logtest.Hook
}

// aNode returns a node with containerd 2.4.2. The changes are made to its options.
func aNode(t *testing.T, changes ...func(*Options)) *node {
	t.Helper()
	n := aStillNode(t, changes...)
	go func() { assert.NoError(t, n.o.Starts.Run(t.Context())) }()
	n.passes(0)
	return n
}

// onNode runs a test in a bubble of synctest on aNode.
func onNode(t *testing.T, test func(t *testing.T, n *node), changes ...func(*Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, aNode(t, changes...)) })
}

// longWait is so long that twelve starts at the start timeout end within it: a few pods get a place in the gate before a
// start has ended.
const longWait = time.Hour

// gateTimeout sets --gate-timeout.
func gateTimeout(d time.Duration) func(*Options) { return func(o *Options) { o.Gate.Timeout = d } }

// aStillNode is aNode without the loop.
func aStillNode(t *testing.T, changes ...func(*Options)) *node {
	t.Helper()
	hook := filepath.Join(t.TempDir(), "hook")
	require.NoError(t, os.WriteFile(hook, nil, 0o700))
	log, logged := logtest.NewNullLogger()
	watch := &podWatch{pods: map[string]podwatch.Pod{}}
	o := Options{
		Pods: watch, Observer: anObserver(log), RefuseAt: RefuseAuto, Hold: 200 * time.Millisecond, Cores: 2, ProcRoot: "/nowhere",
		Gate: GateOptions{Use: GateAuto, Path: hook, Socket: "/run/gate.sock", Timeout: longWait},
	}
	for _, change := range changes {
		change(&o)
	}
	n := &node{Chooser: aChooser(o), t: t, watch: watch, log: logged}
	n.configure("spec: {}", throttle.Settings{MaxConcurrent: 1})
	n.Connected("containerd", "2.4.2", 0)
	return n
}

// gateUse sets --gate.
func gateUse(use GateUse) func(*Options) { return func(o *Options) { o.Gate.Use = use } }

// refuseAt sets --refuse-at.
func refuseAt(at RefuseAt) func(*Options) { return func(o *Options) { o.RefuseAt = at } }

// configure puts a configuration with these limits in force.
func (n *node) configure(spec string, settings throttle.Settings) {
	n.t.Helper()
	parsed, err := crd.Parse([]byte("apiVersion: pod-pacemaker.io/v1alpha1\nkind: PacemakerConfig\nmetadata: {name: test}\n" + spec))
	require.NoError(n.t, err)
	n.o.Starts.Configure(time.Now(), crd.FromFile(parsed.Config), settings)
}

// longest makes a start hold the slot for so long at most: what is sure of the places in the gate before any start has ended.
func (n *node) longest(start time.Duration) {
	n.t.Helper()
	n.configure("spec: {}", throttle.Settings{MaxConcurrent: 1, StartTimeout: start})
}

// observed lets three pods start, one after the other, that take so long.
func (n *node) observed(took time.Duration) {
	for _, name := range []string{"earlier-1", "earlier-2", "earlier-3"} {
		earlier := n.inAnother(name).runs()
		earlier.starts("app")
		time.Sleep(took)
		earlier.getsReady()
	}
}

// passes lets time pass, and a little more, until the loop has done a round and all goroutines wait.
func (n *node) passes(d time.Duration) {
	time.Sleep(d + 10*time.Millisecond)
	synctest.Wait()
}

// snapshot returns the state of the limiter.
func (n *node) snapshot() throttle.Snapshot { return n.o.Starts.Snapshot(time.Now()) }

// names returns the waiting pods and the pods that hold a slot, each in order.
func (n *node) names() (waiting, starting []string) {
	s := n.snapshot()
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

// counted returns the value of a metric by the value of its last label. Of a histogram, it returns the count.
func (n *node) counted(name string) map[string]float64 {
	n.t.Helper()
	families, err := n.o.Observer.Registry().Gather()
	require.NoError(n.t, err)
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if label := m.GetLabel(); f.GetName() == "pod_pacemaker_"+name {
				key := ""
				if len(label) > 0 {
					key = label[len(label)-1].GetValue()
				}
				values[key] += m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return values
}

// podWatch is a pod watch whose pods a test sets.
type podWatch struct {
	mu   sync.Mutex
	pods map[string]podwatch.Pod
}

func (w *podWatch) Get(uid string) (podwatch.Pod, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	pod, known := w.pods[uid]
	return pod, known
}

// Await does not learn of a pod that it does not know.
func (w *podWatch) Await(ctx context.Context, uid string) (podwatch.Pod, bool) {
	pod, known := w.Get(uid)
	if !known {
		<-ctx.Done()
	}
	return pod, known
}

func (*podWatch) Healthy() bool               { return true }
func (*podWatch) HealthySince(time.Time) bool { return true }

func (*podWatch) OnNode() (pods []podwatch.Pod, listed bool)                       { return nil, false }
func (*podWatch) SelectBy(func(string, map[string]string) []string, time.Duration) {}

// tell changes a pod.
func (w *podWatch) tell(uid string, change func(*podwatch.Pod)) podwatch.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	pod := w.pods[uid]
	change(&pod)
	w.pods[uid] = pod
	return pod
}
