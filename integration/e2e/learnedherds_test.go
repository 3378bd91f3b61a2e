//go:build e2e && full

package e2e

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// workloads are Deployments that start together, and once more later.
type workloads []struct {
	name       string
	pods       int32
	spec       corev1.PodSpec
	cpuSeconds float64 // that a pod burns before it is ready
}

// cameUp is how workloads started: the time, and the number of containers that probes killed.
type cameUp struct {
	took  time.Duration
	kills int
	// work is the least time that the CPUs need for what the workloads burn, at the share that other
	// work and the services of the node left.
	work time.Duration
}

// up starts all workloads in a namespace and waits until every pod is ready.
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
	b.work = time.Duration(float64(w.work()) / (1 - min(machine.besidePods(), tolerableForeign)))
	for _, pod := range pods(t, ns) {
		b.kills += int(restarts(pod))
	}
	logLives(t, before.at, lives(t, ns))
	figure(t, "all ready after %.1f s, %d killed by probes; %s", b.took.Seconds(), b.kills, machine)
	return b
}

// twice starts the workloads, takes them down, and starts them again.
func (w workloads) twice(t *testing.T, d *daemon) (first, again cameUp) {
	t.Helper()
	d.configure(t, "{throttleConfig: {adaptive: {}}}")
	ns := namespace(t)
	scale := w.deployed(t, ns)
	for _, up := range []*cameUp{&first, &again} {
		*up = w.up(t, ns, scale)
		d.idle(t)
		w.down(t, ns, scale)
	}
	assertAllPaced(t, d)
	return first, again
}

// unpaced starts the workloads without the daemon and without liveness probes.
func (w workloads) unpaced(t *testing.T) cameUp {
	t.Helper()
	w, ns := slices.Clone(w), namespace(t)
	for i := range w {
		w[i].spec = *w[i].spec.DeepCopy()
		w[i].spec.Containers[0].LivenessProbe = nil
	}
	scale := w.deployed(t, ns)
	defer w.down(t, ns, scale)
	return w.up(t, ns, scale)
}

// deployed creates the workloads in a namespace, without pods, and returns how to give one of them pods.
func (w workloads) deployed(t *testing.T, ns string) (scale func(name string, pods int32)) {
	t.Helper()
	for _, one := range w {
		deploy(t, ns, one.name, 0, one.spec)
	}
	return func(name string, pods int32) {
		_, err := node.Client().AppsV1().Deployments(ns).Patch(t.Context(), name, types.MergePatchType,
			[]byte(fmt.Sprintf(`{"spec":{"replicas":%d}}`, pods)), metav1.PatchOptions{})
		require.NoError(t, err)
	}
}

// down removes the pods of all workloads.
func (w workloads) down(t *testing.T, ns string, scale func(name string, pods int32)) {
	t.Helper()
	for _, one := range w {
		scale(one.name, 0)
	}
	polled(t, time.Second, "no pod is left", func() bool { return len(pods(t, ns)) == 0 })
}

// work returns the least time that the machine's CPUs need for what the workloads burn.
func (w workloads) work() (sum time.Duration) {
	for _, d := range w {
		sum += time.Duration(float64(d.pods) * d.cpuSeconds / float64(runtime.NumCPU()) * float64(time.Second))
	}
	return sum
}

// Of pods that idle for long and then burn CPU together, few start until the first have ended; the
// second time, the daemon knows their cost, and they take at most 1.2 of the ideal time. Feedback
// alone cannot foresee them.
func TestIdlersThatBurnLaterAreForeseen(t *testing.T) {
	idlersAreForeseen(t, startDaemonWithRoom(t), 1.2)
}

// mostByRefusal bounds the second herd of idlers where kubelet tries a pod again 10 to 15 s after its refusal.
const mostByRefusal = 1.25

// The same as TestIdlersThatBurnLaterAreForeseen without the waiting room: a pod that has no place in the gate when its
// turn comes is late by the time until kubelet tries it again.
func TestIdlersAreForeseenByRefusal(t *testing.T) {
	idlersAreForeseen(t, startDaemon(t), mostByRefusal)
}

// idlersAreForeseen starts a herd of idlers twice. The second may take most times the ideal time.
func idlersAreForeseen(t *testing.T, d *daemon, most float64) {
	t.Helper()
	const herd, burns, idles = 24, 3.0, 15 * time.Second
	idlers := workloads{{"idlers", herd, herdPod(burns, waiting(idles), killedAfter(27*time.Second)), burns}}
	first, again := idlers.twice(t, d)
	// No pod can begin its work before the first has idled.
	ideal := idles + again.work
	figure(t, "the second time %.2f of %.1f s, the time of one idle phase and the CPU work", again.took.Seconds()/ideal.Seconds(), ideal.Seconds())
	assert.LessOrEqual(t, first.kills, 1, "killed the first time")
	assert.Zero(t, again.kills, "killed the second time")
	assert.LessOrEqual(t, again.took.Seconds(), most*ideal.Seconds(), "makespan the second time")
}

// mostMixed bounds the mixed herd. It took 1.04 to 1.08 of the unpaced one.
const mostMixed = 1.24

// Pods that sleep and pods with little and much CPU work start together: the second time, they take
// at most 1.24 times as long as without the daemon and without liveness probes, and none is killed.
func TestAMixedHerdIsForeseen(t *testing.T) {
	mixed := workloads{
		{"sleeps", 8, herdPod(0.1, sleeping("15s"), killedAfter(40*time.Second)), 0.1},
		{"works", 16, herdPod(2, killedAfter(27*time.Second)), 2},
		{"toils", 8, herdPod(6, killedAfter(40*time.Second)), 6},
		{"quick", 8, herdPod(0.1, killedAfter(27*time.Second)), 0.1},
	}
	unpaced := mixed.unpaced(t)
	first, again := mixed.twice(t, startDaemonWithRoom(t))
	figure(t, "the second time %.2f of the unpaced herd, %.2f of %.1f s, the time of the CPU work",
		again.took.Seconds()/unpaced.took.Seconds(), again.took.Seconds()/again.work.Seconds(), again.work.Seconds())
	assert.Zero(t, first.kills+again.kills, "killed")
	assert.LessOrEqual(t, again.took.Seconds(), mostMixed*unpaced.took.Seconds(), "makespan the second time")
}
