//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
)

// mixedLimit is how many pods of a mixed herd start at a time.
const mixedLimit = 4

// mostMixedTime is how long a mixed herd may take.
const mostMixedTime = 10 * time.Minute

// mixedCPU is what each pod of a mixed herd burns, in CPU-seconds.
const mixedCPU = 0.3

// A mixed herd has eight kinds of pods with a network of their own, a whole one in these numbers, and
// pods that the waiting room does not hold: some in the host's network, a static one and exempt ones.
var mixedKinds = []mixedKind{
	{"plain", 30, mixedCPU, nil},
	{"init", 20, mixedCPU, []shape{withInit}},
	{"sidecar", 15, mixedCPU, []shape{withSidecar}},
	{"unprobed", 15, mixedCPU, []shape{withoutProbes}},
	{"sleeper", 10, mixedCPU, []shape{sleeping("5s")}},
	{"job", 10, mixedCPU, []shape{runOnce}},
	{"two", 5, mixedCPU, []shape{withSecond}},
	{"crash", 5, mixedCPU, []shape{crashing}},
}

// mixedKind is a number of like pods of a mixed herd.
type mixedKind struct {
	name       string // job: each pod is of a Job of its own; crash: its pods crash
	count      int32
	cpuSeconds float64 // that each burns
	shapes     []shape
}

const (
	mixedHost   = 3
	mixedExempt = 2
)

const sidecarPort = 8081

// withInitAndSidecar gives the pod an init container, and a native sidecar that must be up before the app
// starts.
func withInitAndSidecar(spec *corev1.PodSpec) {
	always := corev1.ContainerRestartPolicyAlways
	up := probe(corev1.Probe{PeriodSeconds: 1, FailureThreshold: 60})
	up.HTTPGet.Port = intstr.FromInt32(sidecarPort)
	own := func(name string, args ...string) corev1.Container {
		return corev1.Container{Name: name, Image: lab.HerdImage, ImagePullPolicy: corev1.PullNever, Args: append(args, "--cpu-seconds", "0.1")}
	}
	sidecar := own("sidecar", "--port", "8081")
	sidecar.RestartPolicy, sidecar.StartupProbe = &always, up
	spec.InitContainers = []corev1.Container{own("init", "--done"), sidecar}
}

// withInit gives the pod an init container.
func withInit(spec *corev1.PodSpec) {
	withInitAndSidecar(spec)
	spec.InitContainers = spec.InitContainers[:1]
}

// withSidecar gives the pod a native sidecar that must be up before the app starts.
func withSidecar(spec *corev1.PodSpec) {
	withInitAndSidecar(spec)
	spec.InitContainers = spec.InitContainers[1:]
}

// withSecond gives the pod another container.
func withSecond(spec *corev1.PodSpec) {
	up := probe(corev1.Probe{PeriodSeconds: 1, FailureThreshold: 1})
	up.HTTPGet.Port = intstr.FromInt32(sidecarPort)
	spec.Containers = append(spec.Containers, corev1.Container{
		Name: "second", Image: lab.HerdImage, ImagePullPolicy: corev1.PullNever,
		Args: []string{"--cpu-seconds", "0.1", "--port", fmt.Sprint(sidecarPort)}, ReadinessProbe: up,
	})
}

// inHostNetwork puts the pod into the host's network, where it listens nowhere.
func inHostNetwork(spec *corev1.PodSpec) {
	withoutProbes(spec)
	spec.HostNetwork = true
	spec.Containers[0].Args = append(spec.Containers[0].Args, "--port", "0")
}

// mixedRun is what a mixed herd showed.
type mixedRun struct {
	took   time.Duration
	odd    map[string]int // states other than waiting, running and completed, and how many pods had them
	host   map[string]int // the same of pods in the host's network
	ours   []string       // Warning events that name pod-pacemaker
	warned int            // such events of pods in the host's network, which beyond the gate are refused
	crash  int            // such events of pods that crash, which wait in the gate when they start again
	killed int32          // restarts of pods that do not crash
}

func (r mixedRun) String() string {
	return fmt.Sprintf("all ready or ended after %.1f s; states that look like failing: %v; of pods in the host's network: %v; Warning events of ours: %d, %d of pods in the host's network, and %d of pods that crash; restarts: %d",
		r.took.Seconds(), r.odd, r.host, len(r.ours), r.warned, r.crash, r.killed)
}

// runMixed starts a mixed herd of these kinds, a whole one divided by a number, and waits until its pods are ready or have
// ended.
func runMixed(t *testing.T, kinds []mixedKind, divided int32) mixedRun {
	t.Helper()
	ns := namespace(t)
	seen, stop := watchLooks(t, ns)
	begin := time.Now()
	deploy(t, ns, "host", mixedHost, herdPod(0, inHostNetwork))
	removeStatic := writeStatic(t, ns, herdPod(mixedCPU))
	for i := range mixedExempt {
		name := fmt.Sprintf("exempt-%d-%s", i, unique())
		createPod(t, metav1.NamespaceSystem, name, herdPod(mixedCPU, withoutProbes))
		t.Cleanup(func() {
			assert.NoError(t, node.Client().CoreV1().Pods(metav1.NamespaceSystem).Delete(context.Background(), name, metav1.DeleteOptions{}))
		})
	}
	count := mixedHost + 1
	for _, kind := range kinds {
		n := kind.count / divided
		count += int(n)
		if kind.name != "job" {
			deploy(t, ns, kind.name, n, herdPod(kind.cpuSeconds, kind.shapes...))
			continue
		}
		for i := range n {
			createJob(t, ns, fmt.Sprintf("job-%d", i), herdPod(kind.cpuSeconds, kind.shapes...))
		}
	}
	polledFor(t, mostMixedTime, 500*time.Millisecond, "all pods that do not crash are ready or have ended", func() bool {
		up := 0
		for _, p := range pods(t, ns) {
			if strings.HasPrefix(p.Name, "crash-") && len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].RestartCount > 0 ||
				condition(p, corev1.PodReady) || p.Status.Phase == corev1.PodSucceeded {
				up++
			}
		}
		return up == count
	})
	r := mixedRun{took: time.Since(begin), odd: map[string]int{}, host: map[string]int{}}
	states := seen.all()
	stop()
	for _, state := range states {
		for _, pod := range seen.pods(state) {
			switch {
			case strings.HasPrefix(pod, "crash-"), state == string(corev1.PodSucceeded) && strings.HasPrefix(pod, "job-"):
			case strings.HasPrefix(pod, "host-"):
				r.host[state]++
			default:
				r.odd[state]++
			}
		}
	}
	events, err := node.Client().CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "type=Warning"})
	require.NoError(t, err)
	for _, e := range events.Items {
		switch pod := e.InvolvedObject.Name; {
		case !ofOurs(e):
		case strings.HasPrefix(pod, "crash-"):
			r.crash++
		case strings.HasPrefix(pod, "host-"):
			r.warned++
		default:
			r.ours = append(r.ours, pod+": "+e.Reason+": "+e.Message)
		}
	}
	for _, p := range pods(t, ns) {
		if !strings.HasPrefix(p.Name, "crash-") {
			r.killed += restarts(p)
		}
	}
	removeStatic()
	return r
}

// ofOurs reports whether an event comes from a wait.
func ofOurs(e corev1.Event) bool { return strings.Contains(e.Message, "pod-pacemaker") }

// assertQuiet checks that nothing looked like failing.
func (r mixedRun) assertQuiet(t *testing.T) {
	t.Helper()
	assert.Empty(t, slices.Sorted(maps.Keys(r.odd)), "states other than waiting, running and completed")
	assert.Empty(t, slices.Sorted(maps.Keys(r.host)), "the same in the host's network")
	assert.Empty(t, r.ours, "Warning events of ours")
	assert.Zero(t, r.killed, "restarts of pods that do not crash")
}

// With a default daemon, nothing about half a mixed herd looks like failing.
func TestHalfAMixedHerdWaitsQuietly(t *testing.T) {
	removeRoomLater(t)
	d := startDaemon(t, roomArgs("auto")...)
	d.awaitRoom(t)
	d.configure(t, fmt.Sprintf("{throttleConfig: {maxConcurrent: {value: %d}}}", mixedLimit))
	r := runMixed(t, mixedKinds, 2)
	figure(t, "half a mixed herd: %s", r)
	r.assertQuiet(t)
}
