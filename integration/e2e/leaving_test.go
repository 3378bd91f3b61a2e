//go:build e2e

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// gateTimeout is how long a hook waits at most, unless told otherwise.
const gateTimeout = 100 * time.Second

// deletionRatio is how much longer it may take until pods that wait are gone than
// until pods that run are.
const deletionRatio = 2

// A Deployment that is deleted while its pods wait at the gate is gone as soon as one
// whose pods run, with every hook and every runc.
func TestDeleteWhileWaiting(t *testing.T) {
	repeated(t, func(t *testing.T) string {
		const herd, limit = 8, 3
		d := startDaemon(t)
		ns := namespace(t)
		deploy(t, ns, "runs", herd, herdPod(0, newLatch(t).holds))
		eventually(t, "all run", func() bool { return len(begun(t, ns)) == herd })
		running := deletion(t, ns, "runs")

		d.configure(t, "{throttleConfig: {maxConcurrent: {value: 3}, noProgressAfter: 0s}}")
		deploy(t, ns, "waits", herd, herdPod(0, newLatch(t).holds))
		eventually(t, "pods wait at the gate", func() bool { return d.status(t).Gate.Waiters == herd-limit })
		require.NotEmpty(t, hooks(t), "hooks that wait")
		waiting := deletion(t, ns, "waits")
		eventually(t, "no hook and no runc is left", func() bool { return len(hooks(t)) == 0 })
		d.idle(t)
		assert.Zero(t, d.status(t).Gate.Waiters)
		ratio := waiting.Seconds() / running.Seconds()
		figure(t, "%d pods gone %.1f s after their Deployment, with %d at the gate; %.1f s where all run; ratio %.2f",
			herd, waiting.Seconds(), herd-limit, running.Seconds(), ratio)
		return above("the time until all pods are gone, to that of pods that run", ratio, deletionRatio)
	})
}

// deletion deletes the Deployment and gives how long it takes until all pods are gone.
func deletion(t *testing.T, ns, deployment string) time.Duration {
	t.Helper()
	begin, background := time.Now(), metav1.DeletePropagationBackground
	require.NoError(t, node.Client().AppsV1().Deployments(ns).Delete(t.Context(), deployment, metav1.DeleteOptions{PropagationPolicy: &background}))
	watched(t, "all pods are gone", func() bool { return len(pods(t, ns)) == 0 })
	return time.Since(begin)
}
