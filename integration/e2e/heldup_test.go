//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Bounds of the effect of waiting pods on others: how much longer the median round takes, and the second slowest one.
// kubelet tries the refused ones of 30 pods again in waves, which take both CPUs for some seconds: measured 0.33 and
// 1.67 s on a busy machine. A runtime that is held up takes 2 s longer for each of its time-outs.
const (
	heldUpMost    = 500 * time.Millisecond
	heldUpSecond  = 2 * time.Second
	statsWithin   = 15 * time.Second
	heldUpRounds  = 7
	heldUpWaiting = 30
)

// While 30 pods wait, the runtime creates and removes an unrelated exempt pod without waiting for
// them, and kubelet's statistics list its container soon. Both sides are measured again if the
// result is too slow, because other work may have begun between them, and if a waiting pod reached
// its deadline during the measurement.
func TestTheRuntimeIsNotHeldUp(t *testing.T) {
	repeated(t, func(t *testing.T) string {
		longer, second, known, waited := heldUp(t)
		if waited != heldUpWaiting {
			return fmt.Sprintf("%d of %d pods waited to the end", waited, heldUpWaiting)
		}
		return cmp.Or(above("seconds longer to create or to remove a pod", longer.Seconds(), heldUpMost.Seconds()),
			above("seconds longer in the second slowest round", second.Seconds(), heldUpSecond.Seconds()),
			above("seconds until the statistics list a container", known.Seconds(), statsWithin.Seconds()))
	})
}

// heldUp returns how much longer an unrelated pod takes while others wait, at the median and in the second slowest round,
// when the statistics list its container, and how many pods waited to the end.
func heldUp(t *testing.T) (longer, second, known time.Duration, waited int) {
	t.Helper()
	const slots = 2
	other, herd := namespace(t), namespace(t)
	without := rounds(t, other)

	d := startDaemon(t, placesForAll...)
	d.configure(t, fmt.Sprintf("{exemptions: {namespaces: [%s]}, throttleConfig: {maxConcurrent: {value: %d}, noProgressAfter: 0s}}", other, slots))
	deploy(t, herd, "holds", slots, herdPod(0.1, sleeping("1h")))
	eventually(t, "the slots are taken", func() bool { return len(d.status(t).Starting) == slots })
	deploy(t, herd, "waits", heldUpWaiting, herdPod(0.1))
	eventually(t, "all other pods wait", func() bool { return len(d.status(t).Waiting) == heldUpWaiting })
	with := rounds(t, other)
	assert.Positive(t, assertHooksSleep(t), "waiting hooks: without one there is nothing to check")

	createPod(t, other, "counted", herdPod(0.1))
	eventually(t, "the process of the pod runs", func() bool { return len(runningContainers(t, other, "counted")) == 1 })
	began := time.Now()
	eventually(t, "the statistics list the pod", func() bool {
		known, err := podsWithCPU(t.Context())
		require.NoError(t, err)
		return slices.Contains(known, other+"/counted")
	})
	known = time.Since(began)

	s := d.status(t)
	longer, second = with.longerAt(heldUpRounds/2, without), with.longerAt(heldUpRounds-2, without)
	figure(t, "an exempt pod is %s, without the daemon %s; in the statistics after %.1f s; %d at the gate", with, without, known.Seconds(), s.Gate.Waiters)
	return longer, second, known, heldUpWaiting - begunOf(t, herd, "waits-")
}

// roundTimes are how long it took to create pods, until their processes ran, and then to remove them, until
// these were gone. Each is sorted, the shortest first.
type roundTimes struct{ created, removed []time.Duration }

func (r roundTimes) String() string {
	return fmt.Sprintf("created in %.2f s (median %.2f, at most %.2f) and removed in %.2f s (%.2f, %.2f)",
		r.created[0].Seconds(), middle(r.created), slices.Max(r.created).Seconds(), r.removed[0].Seconds(), middle(r.removed), slices.Max(r.removed).Seconds())
}

// longerAt returns how much longer the round took that is so many from the fastest, to create or to remove a pod.
func (r roundTimes) longerAt(n int, without roundTimes) time.Duration {
	return max(r.created[n]-without.created[n], r.removed[n]-without.removed[n])
}

// rounds creates and removes pods, one after the other. It uses no probe, because a probe's period would
// hide a delay.
func rounds(t *testing.T, ns string) (took roundTimes) {
	t.Helper()
	for i := range heldUpRounds {
		name := fmt.Sprintf("round-%d-%s", i, unique())
		began := time.Now()
		createPod(t, ns, name, herdPod(0, withoutProbes))
		watched(t, "the process of the pod runs", func() bool { return len(runningContainers(t, ns, name)) == 1 })
		created := time.Since(began)
		require.NoError(t, node.Client().CoreV1().Pods(ns).Delete(t.Context(), name, metav1.DeleteOptions{}))
		watched(t, "the process of the pod is gone", func() bool { return len(runningContainers(t, ns, name)) == 0 })
		removed := time.Since(began) - created
		took.created, took.removed = append(took.created, created), append(took.removed, removed)
		t.Logf("round %d: created in %.2f s, removed in %.2f s", i, created.Seconds(), removed.Seconds())
		eventually(t, "the pod is gone", func() bool { return len(pods(t, ns)) == 0 })
	}
	slices.Sort(took.created)
	slices.Sort(took.removed)
	return took
}

func middle(all []time.Duration) float64 {
	return slices.Sorted(slices.Values(all))[len(all)/2].Seconds()
}

// runningContainers returns the IDs of the running containers of a pod.
func runningContainers(t *testing.T, ns, pod string) (ids []string) {
	t.Helper()
	for _, c := range listed(t, ns) {
		if c.State == runtimeapi.ContainerState_CONTAINER_RUNNING && c.Labels["io.kubernetes.pod.name"] == pod {
			ids = append(ids, c.Id)
		}
	}
	return ids
}

// watched is eventually with a short poll interval, for measurements.
func watched(t *testing.T, what string, holds func() bool) {
	t.Helper()
	polled(t, 20*time.Millisecond, what, holds)
}

// podsWithCPU returns the pods, as namespace/name, for which kubelet's statistics have a CPU use.
func podsWithCPU(ctx context.Context) ([]string, error) {
	raw, err := node.Client().CoreV1().RESTClient().Get().
		AbsPath("/api/v1/nodes", node.NodeName, "proxy/stats/summary").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("kubelet's statistics: %w: %s", err, raw)
	}
	var summary struct {
		Pods []struct {
			PodRef     struct{ Name, Namespace string }
			Containers []struct {
				CPU *struct{ UsageCoreNanoSeconds *uint64 }
			}
		}
	}
	if err := json.Unmarshal(raw, &summary); err != nil {
		return nil, fmt.Errorf("kubelet's statistics: %w", err)
	}
	var known []string
	for _, p := range summary.Pods {
		for _, c := range p.Containers {
			if c.CPU != nil && c.CPU.UsageCoreNanoSeconds != nil {
				known = append(known, p.PodRef.Namespace+"/"+p.PodRef.Name)
			}
		}
	}
	return known, nil
}
