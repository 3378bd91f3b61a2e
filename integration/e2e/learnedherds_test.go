//go:build e2e && full

package e2e

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// workloads are Deployments that are brought up together, and later once more.
type workloads []struct {
	name       string
	pods       int32
	spec       corev1.PodSpec
	cpuSeconds float64 // that a pod burns before it is ready
}

// cameUp is how workloads came up: in what time, with how many containers killed by probes.
type cameUp struct {
	took  time.Duration
	kills int
	// work is how long the CPUs need at least for what the workloads burn, less what others than the run took.
	work time.Duration
}

// up brings all of the workloads up in a namespace, and waits until every pod is ready.
func (w workloads) up(t *testing.T, ns string, scale func(name string, pods int32)) (b cameUp) {
	t.Helper()
	before, all := readMachine(t), 0
	for _, d := range w {
		scale(d.name, d.pods)
		all += int(d.pods)
	}
	polled(t, 250*time.Millisecond, "all pods are ready", func() bool { return allReady(t, ns, all) })
	b.took = time.Since(before.at)
	machine := before.since(t)
	b.work = time.Duration(float64(w.work()) / (1 - min(machine.share(), tolerableForeign)))
	for _, pod := range pods(t, ns) {
		b.kills += int(restarts(pod))
	}
	logLives(t, before.at, lives(t, ns))
	figure(t, "all ready after %.1f s, %d killed by probes; %s", b.took.Seconds(), b.kills, machine)
	return b
}

// twice brings the workloads up for the first time, takes them down, and brings them up once more. They wait in
// the waiting room: kubelet comes back to refused pods late, which says nothing of the law.
func (w workloads) twice(t *testing.T) (again cameUp) {
	t.Helper()
	d := startDaemonWithRoom(t)
	d.configure(t, "{throttleConfig: {adaptive: {}}}")
	ns := namespace(t)
	for _, one := range w {
		deploy(t, ns, one.name, 0, one.spec)
	}
	scale := func(name string, pods int32) {
		_, err := node.Client().AppsV1().Deployments(ns).Patch(t.Context(), name, types.MergePatchType,
			[]byte(fmt.Sprintf(`{"spec":{"replicas":%d}}`, pods)), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	for range 2 {
		again = w.up(t, ns, scale)
		d.idle(t)
		for _, one := range w {
			scale(one.name, 0)
		}
		polled(t, time.Second, "no pod is left", func() bool { return len(pods(t, ns)) == 0 })
	}
	assertNobodyUnpaced(t, d)
	return again
}

// work is how long the CPUs of the machine need at least for what the workloads burn.
func (w workloads) work() (sum time.Duration) {
	for _, d := range w {
		sum += time.Duration(float64(d.pods) * d.cpuSeconds / float64(runtime.NumCPU()) * float64(time.Second))
	}
	return sum
}

// Pods that idle for long and then turn to CPU work together are what feedback cannot foresee: the first time, at the
// limit that suits idle ones, probes kill most of them. What one of them needs is known the second time.
func TestIdlersThatBurnLaterAreForeseen(t *testing.T) {
	const herd, burns, idles = 24, 3.0, 15 * time.Second
	idlers := workloads{{"idlers", herd, herdPod(burns, waiting(idles), killedAfter(27*time.Second)), burns}}
	again := idlers.twice(t)
	// Nobody can begin with the work before the first has idled.
	ideal := idles + again.work
	figure(t, "the second time %.2f of %.1f s, which idling once and the CPU work take", again.took.Seconds()/ideal.Seconds(), ideal.Seconds())
	assert.Zero(t, again.kills, "killed the second time")
	assert.LessOrEqual(t, again.took.Seconds(), 1.35*ideal.Seconds(), "makespan the second time")
}

// mostMixed is the bound of the mixed herd, whose sleepers take 15 s, and all of whose pods have to be made.
const mostMixed = 1.5

// Pods that sleep, and some of little and much work, in no order.
func TestAMixedHerdIsForeseen(t *testing.T) {
	mixed := workloads{
		{"sleeps", 8, herdPod(0.1, sleeping("15s"), killedAfter(40*time.Second)), 0.1},
		{"works", 16, herdPod(2, killedAfter(27*time.Second)), 2},
		{"toils", 8, herdPod(6, killedAfter(40*time.Second)), 6},
		{"quick", 8, herdPod(0.1, killedAfter(27*time.Second)), 0.1},
	}
	again := mixed.twice(t)
	figure(t, "the second time %.2f of %.1f s, which the CPU work takes", again.took.Seconds()/again.work.Seconds(), again.work.Seconds())
	assert.Zero(t, again.kills, "killed the second time")
	assert.LessOrEqual(t, again.took.Seconds(), mostMixed*again.work.Seconds(), "makespan the second time")
}
