//go:build e2e && full

package e2e

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/integration/build"
	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
)

// onNode runs the rest of the test on another node, with the containerd or Kubernetes of that name in versions.txt and
// additional configuration of containerd.
func onNode(t *testing.T, part, config string) {
	t.Helper()
	cache, err := lab.CacheDir()
	require.NoError(t, err)
	binaries, err := lab.Build(t.Context(), cache, build.PlainProgress(os.Stderr))
	require.NoError(t, err)
	component, err := build.Find(part)
	require.NoError(t, err)
	dir, err := build.Cache{Dir: cache, Progress: build.PlainProgress(os.Stderr)}.Component(t.Context(), component)
	require.NoError(t, err)
	if part == oldestKubernetes { // the lab's tokens name a node, like those of pods
		binaries.UseKubernetes(dir, "--feature-gates", "ServiceAccountTokenNodeBinding=true")
	} else {
		binaries.UseContainerd(dir)
	}
	other, err := lab.StartCluster(t.Context(), lab.ClusterOptions{
		RuntimeOptions: lab.RuntimeOptions{Binaries: binaries, ContainerdConfig: config},
	})
	require.NoError(t, err)
	usual := node
	node = other
	t.Cleanup(func() {
		node = usual
		if err := other.Stop(context.Background()); err != nil {
			t.Errorf("stop of the cluster: %v", err)
		}
	})
	out, err := node.Kubectl(t.Context(), "apply", "--server-side", "-k", repository("deploy", "crds"))
	require.NoError(t, err, "%s", out)
}

// If a validator of the runtime rejects hooks, the creation of containers with a hook fails once each, until pods
// of two namespaces have failed, and from then on pods are refused. After a while without hooks the daemon tries one
// again with a single container, whose creation fails once, too.
func TestARuntimeThatRejectsHooksIsPacedByRefusal(t *testing.T) {
	const herd, others, limit = 6, 4, 2
	onNode(t, "containerd", `
[plugins."io.containerd.nri.v1.nri".default_validator]
  enable = true
  reject_oci_hook_adjustment = true
`)
	d := startDaemon(t, placesForAll...) // those who start at once have no hook
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 2}}}")
	require.True(t, d.status(t).Gate.Usable, "the gate counts as usable before the first hook")
	ns, another := namespace(t), namespace(t)
	begin := time.Now()
	deploy(t, ns, "herd", herd, herdPod(2, withLiveness))
	deploy(t, another, "herd", others, herdPod(2, withLiveness))
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, herd) && allReady(t, another, others) })
	d.idle(t)
	all := lives(t, ns)
	logLives(t, begin, all)
	assert.LessOrEqual(t, mostStarting(t, all), limit, "pods between the start of their process and ready")
	for _, l := range all {
		assert.Zero(t, restarts(l.pod), "restarts of %s", l.pod.Name)
	}
	s := d.status(t)
	assert.Contains(t, s.Gate.WhyNot, "reject_oci_hook_adjustment")
	events, err := node.Client().CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	rejected := 0
	for _, e := range events.Items {
		if strings.Contains(e.Message, "attempted restricted OCI hook injection") {
			rejected++
			assert.EqualValues(t, 1, e.Count, "%s failed more than once", e.InvolvedObject.Name)
		}
	}
	assert.Positive(t, rejected, "rejected hooks: without one there is nothing to check")
	figure(t, "with a validator that rejects hooks: %d pods all ready after %.1f s, %d rejected once, %d refused at the sandbox, %d at the container",
		herd, lastReady(all).Sub(begin).Seconds(), rejected, s.Refused.Sandbox, s.Refused.Container)
}

// oldContainerds are the containerds whose shim would hold up others while a hook waits, by their
// names in versions.txt.
var oldContainerds = map[string]string{"containerd@2.2": "2.2.5", "containerd@1.7": "1.7.35"}

// On a containerd whose shim would hold up others while a hook waits, pods are refused instead of
// gated: the herd is paced within the limit, and statistics and exec of a running pod answer as
// fast as before.
func TestOldContainerdIsPacedAndNotHeldUp(t *testing.T) {
	for name, version := range oldContainerds {
		t.Run(version, func(t *testing.T) {
			onNode(t, name, "")
			d := startDaemon(t)
			assertNoGate(t, d, version)
			refusedHerd(t, d, version)
		})
	}
}

// assertNoGate sets a limit of 2 on a node without a gate.
func assertNoGate(t *testing.T, d *daemon, version string) {
	t.Helper()
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 2}}}")
	s := d.status(t)
	require.False(t, s.Gate.Usable)
	assert.Contains(t, s.Gate.WhyNot, version, "reason in the status")
}

// refusedHerd runs a herd beside a pod that is queried all the time.
func refusedHerd(t *testing.T, d *daemon, version string) {
	t.Helper()
	const herd, limit = 8, 2
	ns := namespace(t)
	createPod(t, ns, "bystander", herdPod(0.1))
	eventually(t, "the bystander is ready", func() bool { return allReady(t, ns, 1) })
	idle := answers(t, ns, "bystander", time.After(5*time.Second))

	begin := time.Now()
	ended := make(chan time.Time)
	var busy []time.Duration
	var asking sync.WaitGroup
	asking.Go(func() { busy = answers(t, ns, "bystander", ended) })
	deploy(t, ns, "herd", herd, herdPod(2, withLiveness))
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, herd+1) })
	close(ended)
	asking.Wait()

	all := lives(t, ns)
	logLives(t, begin, all)
	assertPacedLives(t, all, limit)
	s := d.status(t)
	assert.Positive(t, s.Refused.Sandbox+s.Refused.Container, "refusals")
	assert.Zero(t, s.Gate.Waiters)
	const slow = 5 * time.Second // a waiting hook would hold them up for all of its wait
	assert.Less(t, slices.Max(busy), slow, "the slowest answer of statistics and exec")
	figure(t, "containerd %s: %d pods all ready after %.1f s (ideal %.1f s), %d refused at the sandbox, %d at the container; statistics and exec answer in %.2f s at most, %.2f s on the idle node",
		version, herd, lastReady(all).Sub(begin).Seconds(), herd*2.0/limit, s.Refused.Sandbox, s.Refused.Container,
		slices.Max(busy).Seconds(), slices.Max(idle).Seconds())
}

func assertPacedLives(t *testing.T, all []life, limit int) {
	t.Helper()
	assert.LessOrEqual(t, mostStarting(t, all), limit, "pods between the start of their process and ready")
	for _, l := range all {
		assert.Zero(t, restarts(l.pod), "restarts of %s", l.pod.Name)
	}
}

// answers alternately asks for the node's statistics and executes a program in a pod, until told to
// end. It returns the duration of each.
func answers(t *testing.T, ns, pod string, end <-chan time.Time) (took []time.Duration) {
	ask := func(what string, answer func() error) {
		began := time.Now()
		if err := answer(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		took = append(took, time.Since(began))
	}
	for {
		ask("statistics", func() error { _, err := podsWithCPU(t.Context()); return err })
		ask("exec", func() error {
			_, err := node.Kubectl(t.Context(), "exec", "-n", ns, pod, "--", "/herd", "--cpu-seconds", "0", "--done")
			return err
		})
		select {
		case <-end:
			return took
		case <-time.After(500 * time.Millisecond):
		}
	}
}
