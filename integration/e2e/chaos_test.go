//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest/shapes"
)

// chaosSeeds are the seeds that every run tries. They kill the daemon twice, and kubelet, containerd and the API server.
var chaosSeeds = []uint64{28, 65}

// chaos runs a shape on the node, and keeps what was done for its judge.
type chaos struct {
	t     *testing.T
	d     *daemon
	shape *shapes.Shape
	began time.Time
	// spaces are the namespaces of the node, by that of the shape.
	spaces           map[string]string
	config           string
	created, deleted map[string]time.Time // by pod
	inForce          []limitsSince
	faults           []happened
	outages          []outage
	away             bool     // the API server
	later            []func() // what is done once it is back
	follower         *follower
	excepted         map[string]int // by what excuses it

	mu       sync.Mutex
	rejected map[string]int // how often another plugin rejects the containers of a pod yet, by namespace/name
}

// limitsSince are limits that were given to the API server at a time.
type limitsSince struct {
	at time.Time
	shapes.Limits
}

// happened is a fault and when it was.
type happened struct {
	kind     shapes.FaultKind
	from, to time.Time
}

// The pods, limits and faults that a seed draws come and go: the starts stay within the limit, a documented exception is
// counted by its name, no container fails without a fault, every pod ends where it should be, and nothing else is left.
//
// CHAOS_SEED has another seed run, and CHAOS_MINUTES as many from there as begin within that time; `make chaos` has other
// seeds every day. `make shapes NODE=1 SEED=7` runs the shape of a seed in a bubble, where its daemon can be watched.
func TestChaos(t *testing.T) {
	seeds, first, minutes := chaosSeeds, chaosNumber(t, "CHAOS_SEED"), chaosNumber(t, "CHAOS_MINUTES")
	if first > 0 {
		seeds = []uint64{first}
	}
	spaces := map[string]string{metav1.NamespaceSystem: metav1.NamespaceSystem}
	for _, name := range []string{"a", "b", "c"} {
		spaces[name] = namespace(t)
	}
	for _, priority := range shapes.Priorities {
		priorityClass(t, chaosClass(priority), priority)
	}
	// Not startDaemon: an API server that has just begun does not know all rights.
	d := startDaemonWith(t, "--kubeconfig", asServiceAccount(t), "--node-name", node.NodeName)
	before, fresh := remaining(t, d), d.fresh(t)
	until := time.Now().Add(time.Duration(minutes) * time.Minute)
	judged, starts := 0, 0
	run := func(seed uint64) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			n, all := runChaos(t, d, spaces, shapes.DrawNode(seed))
			judged, starts = judged+n, starts+all
		})
	}
	for _, seed := range seeds {
		run(seed)
	}
	for seed := seeds[len(seeds)-1] + 1; time.Now().Before(until) && !t.Failed(); seed++ {
		run(seed)
	}
	forgotten := d.assertNothingLeft(t, before)
	now := d.assertNoHeavier(t, fresh)
	figure(t, "%d of %d starts were judged by the limit; the daemon: %s, new %s; forgotten by containerd: %v", judged, starts, now, fresh, forgotten)
	if first == 0 && !t.Failed() { // one seed may have no limit in force
		require.Greater(t, judged, starts/2, "starts that were judged by the limit, of %d", starts)
	}
}

func chaosNumber(t *testing.T, variable string) uint64 {
	t.Helper()
	value := os.Getenv(variable)
	if value == "" {
		return 0
	}
	n, err := strconv.ParseUint(value, 10, 64)
	require.NoError(t, err, variable)
	return n
}

// runChaos runs a shape, and returns how many of its starts were judged by the limit, and how many there were.
func runChaos(t *testing.T, d *daemon, spaces map[string]string, s *shapes.Shape) (judged, starts int) {
	t.Logf("repeat with: make chaos SEED=%d; in a bubble: make shapes NODE=1 SEED=%d\n%s", s.Seed, s.Seed, s)
	c := &chaos{
		t: t, d: d, shape: s, spaces: spaces, config: "shape-" + unique(), created: map[string]time.Time{}, deleted: map[string]time.Time{},
		excepted: map[string]int{}, rejected: map[string]int{}, follower: follow(t, slices.Collect(maps.Values(spaces))...),
	}
	c.prepare()
	c.began = time.Now()
	for _, step := range s.Steps() {
		after(t.Context(), time.Until(c.began.Add(step.At)))
		c.do(step)
	}
	polledFor(t, c.endsWithin(), time.Second, "every pod is where it should be", c.settled)
	d.idle(t)
	took := time.Since(c.began)
	judged, starts = c.judge()
	for i := range s.Pods {
		c.remove(&s.Pods[i])
	}
	eventually(t, "all pods are gone", c.gone)
	eventually(t, "slots, queue and gate are empty", func() bool {
		s := d.status(t)
		return len(s.Waiting) == 0 && len(s.Starting) == 0 && s.Gate.Waiters == 0
	})
	figure(t, "%d pods for %.0f s, %d starts, %d judged by the limit, excepted %v", len(s.Pods), took.Seconds(), starts, judged, c.excepted)
	return judged, starts
}

// do takes a step.
func (c *chaos) do(step shapes.Step) {
	c.t.Helper()
	if f := step.Fault; f != nil {
		c.t.Logf("%7.1f s: %s, ends: %t", time.Since(c.began).Seconds(), f.Kind, step.Ends)
	}
	switch {
	case step.Fault == nil && step.Ends:
		c.remove(step.Pod)
	case step.Fault == nil:
		c.create(step.Pod)
	case step.Ends:
		c.end(step.Fault)
	default:
		c.begin(step.Fault)
	}
}

// begin begins a fault.
func (c *chaos) begin(f *shapes.Fault) {
	c.t.Helper()
	h := happened{kind: f.Kind, from: time.Now()}
	if !f.Kind.Lasts() {
		h.to = h.from
	}
	c.faults = append(c.faults, h)
	ctx := c.t.Context()
	switch f.Kind {
	case shapes.DaemonRestarts:
		require.NoError(c.t, c.d.Kill(ctx))
	case shapes.KubeletRestarts:
		require.NoError(c.t, node.Kubelet.Kill(ctx))
	case shapes.RuntimeRestarts:
		require.NoError(c.t, node.Containerd.Kill(ctx))
	case shapes.APIAway:
		c.away = true
		require.NoError(c.t, node.APIServer.Kill(ctx))
	case shapes.StateUnusable:
		require.NoError(c.t, os.Rename(c.state(), c.state()+".aside"))
		require.NoError(c.t, os.WriteFile(c.state(), nil, 0o600))
	case shapes.ConfigChanges:
		c.configure(f.Limits)
	default:
		require.FailNow(c.t, "no node can do this", "%s", f)
	}
}

// end ends a fault that lasts.
func (c *chaos) end(f *shapes.Fault) {
	c.t.Helper()
	h := &c.faults[slices.IndexFunc(c.faults, func(h happened) bool { return h.kind == f.Kind && h.to.IsZero() })]
	ctx := c.t.Context()
	switch f.Kind {
	case shapes.DaemonRestarts:
		c.d.startUnready(c.t)
		c.outages = append(c.outages, outageFrom(c.t, h.from))
	case shapes.KubeletRestarts:
		require.NoError(c.t, node.Kubelet.Start(ctx))
	case shapes.RuntimeRestarts:
		require.NoError(c.t, node.Containerd.Start(ctx))
		c.outages = append(c.outages, outageFrom(c.t, h.from))
		c.rejects()
	case shapes.APIAway:
		require.NoError(c.t, node.APIServer.Start(ctx))
		c.away = false
		for _, do := range c.later {
			do()
		}
		c.later = nil
	case shapes.StateUnusable:
		require.NoError(c.t, os.Remove(c.state()))
		require.NoError(c.t, os.Rename(c.state()+".aside", c.state()))
	}
	h.to = time.Now()
}

// state is the daemon's folder for what it remembers.
func (c *chaos) state() string { return filepath.Join(filepath.Dir(c.d.runDir), "state") }

// postpone reports whether the API server is away. Then something is done once it is back.
func (c *chaos) postpone(do func()) bool {
	if c.away {
		c.later = append(c.later, do)
	}
	return c.away
}

// create creates a pod.
func (c *chaos) create(p *shapes.Pod) {
	c.t.Helper()
	if c.postpone(func() { c.create(p) }) {
		return
	}
	c.created[p.Name] = time.Now()
	_, err := node.Client().CoreV1().Pods(c.spaces[p.Namespace]).Create(c.t.Context(), c.object(p), metav1.CreateOptions{})
	require.NoError(c.t, err, p)
}

// remove requests the deletion of a pod.
func (c *chaos) remove(p *shapes.Pod) {
	c.t.Helper()
	if c.postpone(func() { c.remove(p) }) || !c.deleted[p.Name].IsZero() {
		return
	}
	c.deleted[p.Name] = time.Now()
	err := node.Client().CoreV1().Pods(c.spaces[p.Namespace]).Delete(c.t.Context(), p.Name, metav1.DeleteOptions{})
	require.NoError(c.t, err, p)
}

// pod returns the pod from the API server, or nil if there is none.
func (c *chaos) pod(p *shapes.Pod) *corev1.Pod {
	c.t.Helper()
	pod, err := node.Client().CoreV1().Pods(c.spaces[p.Namespace]).Get(c.t.Context(), p.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(c.t, err)
	return pod
}

// settled reports whether every pod is where it should be.
func (c *chaos) settled() bool {
	for i := range c.shape.Pods {
		if p := &c.shape.Pods[i]; !c.well(p, c.pod(p)) {
			return false
		}
	}
	return true
}

// gone reports whether no pod is left.
func (c *chaos) gone() bool {
	for i := range c.shape.Pods {
		if c.pod(&c.shape.Pods[i]) != nil {
			return false
		}
	}
	return true
}

// well reports whether a pod is where it should be. One that kubelet does not start again may fail if kubelet or containerd
// is restarted.
func (c *chaos) well(p *shapes.Pod, pod *corev1.Pod) bool {
	switch {
	case pod == nil:
		return p.Deleted > 0
	case p.Deleted > 0:
		return false
	case p.Policy != corev1.RestartPolicyAlways:
		lost := pod.Status.Phase == corev1.PodFailed && len(c.during(time.Time{}, time.Now(), shapes.KubeletRestarts, shapes.RuntimeRestarts)) > 0
		return lost || pod.Status.Phase == corev1.PodSucceeded
	}
	return condition(*pod, corev1.PodReady) && (p.Containers > 1 || restarts(*pod) >= int32(p.Fails()))
}

// endsWithin is how long it may take until every pod is where it should be, once all has happened: as if one pod started
// after the other, twice, with kubelet's back-offs.
func (c *chaos) endsWithin() time.Duration {
	sum := testTimeout
	for i := range c.shape.Pods {
		p := &c.shape.Pods[i]
		sum += 2*p.Work() + time.Duration(p.Fails()+p.Rejected)*time.Minute
		for _, l := range c.inForce {
			sum += l.FillFactor
		}
	}
	return sum
}

// during returns the faults of these kinds that were at a time.
func (c *chaos) during(from, to time.Time, kinds ...shapes.FaultKind) (all []happened) {
	for _, h := range c.faults {
		for _, kind := range kinds {
			if h.kind == kind && h.from.Before(to) && (h.to.IsZero() || h.to.After(from)) {
				all = append(all, h)
			}
		}
	}
	return all
}
