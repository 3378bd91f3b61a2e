//go:build e2e && full

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// With cost Cores, idle pods start two at a time on two cores while their cost is unknown, and many
// at a time once it is learned.
func TestMaxConcurrentCountsCores(t *testing.T) {
	const herd, least = 8, 6
	d := startDaemonWithRoom(t)
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 2, cost: Cores}, noProgressAfter: 0s}}")
	ns := namespace(t)
	scale := func(pods int32) {
		_, err := node.Client().AppsV1().Deployments(ns).Patch(t.Context(), "sleeps", types.MergePatchType,
			[]byte(fmt.Sprintf(`{"spec":{"replicas":%d}}`, pods)), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	deploy(t, ns, "sleeps", 2, herdPod(0, sleeping("10s")))
	polled(t, time.Second, "the first pods are ready", func() bool { return allReady(t, ns, 2) })
	d.idle(t)
	scale(2 + herd)
	most := 0
	polled(t, 250*time.Millisecond, "all pods are ready", func() bool {
		most = max(most, startingNow(t, ns))
		return allReady(t, ns, 2+herd)
	})
	figure(t, "of %d idle pods at most %d started at a time on 2 cores", herd, most)
	require.GreaterOrEqual(t, most, least)

	// Nothing is learned of another Deployment.
	other := namespace(t)
	deploy(t, other, "unknown", herd, herdPod(0, sleeping("9s")))
	first := 0
	polled(t, 250*time.Millisecond, "the first pod of the other Deployment is ready", func() bool {
		first = max(first, startingNow(t, other))
		return readyOf(t, other, "unknown") > 0
	})
	figure(t, "of as many pods of unknown cost at most %d started before the first was ready", first)
	require.LessOrEqual(t, first, 2)
	polled(t, time.Second, "all pods of the other Deployment are ready", func() bool { return allReady(t, other, herd) })
	assertAllPaced(t, d)
}

// startingNow returns how many pods of a namespace run and are not ready, according to kubelet.
func startingNow(t *testing.T, ns string) (n int) {
	t.Helper()
	for _, pod := range pods(t, ns) {
		for _, c := range pod.Status.ContainerStatuses {
			if c.State.Running != nil && !c.Ready && pod.Status.Phase == corev1.PodRunning {
				n++
			}
		}
	}
	return n
}
