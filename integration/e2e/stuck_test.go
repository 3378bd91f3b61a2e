//go:build e2e && full

package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// A pod that never gets ready gives its slot back after startTimeout, with an event StartStuck, and
// the next pod starts. By containerd's times it does not start sooner.
func TestAStuckStartGivesItsSlotBack(t *testing.T) {
	const timeout = 20 * time.Second
	d := startDaemon(t)
	d.configure(t, "{startTimeout: 20s, throttleConfig: {maxConcurrent: {value: 1}, noProgressAfter: 0s}}")
	ns := namespace(t)
	createPod(t, ns, "stuck", herdPod(0, newLatch(t).holds))
	eventually(t, "a pod holds the slot", func() bool { return len(begun(t, ns)) == 1 })
	createPod(t, ns, "next", herdPod(0.1))
	eventually(t, "the next pod is ready", func() bool { return isReady(t, ns, "next") })
	eventually(t, "the stuck pod has an event", func() bool {
		return slices.ContainsFunc(ownEvents(t, ns, "stuck"), func(e corev1.Event) bool { return e.Reason == "StartStuck" })
	})
	all, end := containers(t, ns), d.ended(t, ns)["stuck"]
	require.Len(t, all, 2, "containers, each created once")
	assert.Equal(t, reasons.Stuck, end.Reason)
	held := all[1].started.Sub(end.Admitted)
	figure(t, "the next pod began %.1f s after the turn of the stuck one, with a startTimeout of %s", held.Seconds(), timeout)
	assert.GreaterOrEqual(t, held, timeout, "from the turn of the stuck pod to the process of the next")
	assert.Equal(t, corev1.PodRunning, getPod(t, ns, "stuck").Status.Phase, "the stuck pod, which nothing ends")
}
