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

// Bounds of the effect of waiting pods on others. heldUpRatio bounds the fastest round: kubelet tries
// the refused ones of 30 pods again in waves, which take both CPUs for some seconds, and it notices
// an end once a second, so a round takes 1.1 or 2.1 s as it falls. A handler that takes a second
// makes the fastest round 1.6 times as long.
const (
	heldUpRatio   = 1.4
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
		ratio, known, waited := heldUp(t)
		if waited != heldUpWaiting {
			return fmt.Sprintf("%d of %d pods waited to the end", waited, heldUpWaiting)
		}
		return cmp.Or(above("ratio of the shortest time to create and remove a pod", ratio, heldUpRatio),
			above("seconds until the statistics list a container", known.Seconds(), statsWithin.Seconds()))
	})
}

// heldUp returns how much longer an unrelated pod takes while others wait, when the statistics list
// its container, and how many pods waited to the end.
func heldUp(t *testing.T) (ratio float64, known time.Duration, waited int) {
	t.Helper()
	const slots = 2
	other, herd := namespace(t), namespace(t)
	without := rounds(t, other)

	d := startDaemon(t)
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
	ratio = with[0].Seconds() / without[0].Seconds()
	figure(t, "an exempt pod is created and removed in %.2f s (median %.2f, at most %.2f), without the daemon in %.2f s (%.2f, %.2f), ratio %.2f; in the statistics after %.1f s; %d at the gate",
		with[0].Seconds(), middle(with), slices.Max(with).Seconds(), without[0].Seconds(), middle(without), slices.Max(without).Seconds(), ratio, known.Seconds(), s.Gate.Waiters)
	return ratio, known, heldUpWaiting - begunOf(t, herd, "waits-")
}

// rounds returns the times to create a pod, until its process runs, and to remove it, until the
// process is gone, the shortest first. It uses no probe, because a probe's period would hide a delay.
// kubelet removes a pod after its next look at the runtime, once a second. Each round but the first
// begins just after such a look, so the first one takes up to a second less by chance, and does not count.
func rounds(t *testing.T, ns string) (took []time.Duration) {
	t.Helper()
	for i := range 1 + heldUpRounds {
		name := fmt.Sprintf("round-%d-%s", i, unique())
		began := time.Now()
		createPod(t, ns, name, herdPod(0, withoutProbes))
		watched(t, "the process of the pod runs", func() bool { return len(runningContainers(t, ns, name)) == 1 })
		made := time.Since(began)
		require.NoError(t, node.Client().CoreV1().Pods(ns).Delete(t.Context(), name, metav1.DeleteOptions{}))
		watched(t, "the process of the pod is gone", func() bool { return len(runningContainers(t, ns, name)) == 0 })
		removed := time.Since(began)
		t.Logf("round %d: created in %.2f s, removed after %.2f s", i, made.Seconds(), removed.Seconds())
		if i > 0 {
			took = append(took, removed)
		}
		eventually(t, "the pod is gone", func() bool { return len(pods(t, ns)) == 0 })
	}
	slices.Sort(took)
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
