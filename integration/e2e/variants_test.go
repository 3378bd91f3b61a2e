//go:build e2e && full

package e2e

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// Forty pods are in line before the database, so the loans have to grow. The pods have no exec
// probe: 40 probes a second are more than two cores can execute, and they would kill unpaced pods.
func TestDeadlockOfFortyAndADatabase(t *testing.T) {
	deadlock(t, herdPod(0.1, needsDatabase), 40, func(*testing.T, string) {})
}

// The herd with a startup probe, for which liveness probes wait, is paced just the same.
func TestHerdWithStartupProbe(t *testing.T) {
	pacedHerd(t, withLiveness, withStartup)
}

// The herd without the daemon shows the problem: liveness probes kill pods. It ends after four
// minutes, ready or not.
func TestHerdUnpaced(t *testing.T) {
	ns := namespace(t)
	begin := time.Now()
	deploy(t, ns, "herd", herdPods, herdPod(herdCPUSeconds, withLiveness))
	const limit = 4 * time.Minute
	for !allReady(t, ns, herdPods) && time.Since(begin) < limit {
		after(t.Context(), time.Second)
	}
	ready, kills := 0, int32(0)
	for _, p := range pods(t, ns) {
		if condition(p, corev1.PodReady) {
			ready++
		}
		kills += restarts(p)
	}
	took := time.Since(begin)
	figure(t, "unpaced: %d of %d ready after %.0f s, %d restarts by probes", ready, herdPods, took.Seconds(), kills)
	assert.Positive(t, kills, "kills: an unpaced herd without one shows no problem on this machine")
}

// tolerableMedian is tolerableAdaptive for the median of three, which one slow moment does not
// change.
const tolerableMedian = 1.2

// The median of three runs of TestAdaptiveHerd, which the README states.
func TestAdaptiveHerdMedian(t *testing.T) {
	ratios := make([]float64, 3)
	for i := range ratios {
		ratios[i] = adaptiveHerd(t)
	}
	slices.SortFunc(ratios, cmp.Compare[float64])
	figure(t, "the median of %.2f is %.2f of the unpaced herd without liveness probes; the goal is 1.10", ratios, ratios[1])
	assert.LessOrEqual(t, ratios[1], tolerableMedian)
}

// The node is rebooted and only the daemon is cut off from the API server, until a minute after
// kubelet is back: it reads the limit from disk, and judges the pods by what the node shows.
func TestRebootCutOff(t *testing.T) {
	wire, kubeconfig := newWire(t)
	d := startDaemonAs(t, kubeconfig)
	ns := herdBeforeReboot(t, d)
	shutDown(t, d)
	wire.set(true)

	begin := time.Now()
	boot(t, d)
	require.Equal(t, "Disk", d.status(t).Config.Origin)
	after(t.Context(), time.Minute)
	wire.set(false)
	assertPacedBoot(t, d, ns, begin)
}

// With a kubelet timeout of five minutes, a pod waits in the gate for longer than kubelet's default
// of two minutes, and starts in its turn.
func TestLongWaitsInTheGate(t *testing.T) {
	const timeout, waits = 5 * time.Minute, 130 * time.Second
	d, slow := heldByKubeletConfig(t, timeout, 4*time.Minute)
	ns := namespace(t)
	createPod(t, ns, "waits", herdPod(0.1))
	eventually(t, "the pod waits at the gate", func() bool { return created(t, ns, "waits") })
	after(t.Context(), waits)
	require.Empty(t, begun(t, ns), "the pod still waits")
	slow.release(t)
	eventually(t, "the pod is ready", func() bool { return isReady(t, ns, "waits") })

	all := containers(t, ns)
	require.Len(t, all, 1, "kubelet created the container once")
	waited := all[0].started.Sub(all[0].created)
	figure(t, "a pod waited in the gate for %.0f s", waited.Seconds())
	assert.Greater(t, waited, waits)
	assert.Zero(t, restarts(pods(t, ns)[0]))
	assertNotRefused(t, ns)
	d.idle(t)
}
