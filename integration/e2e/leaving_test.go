//go:build e2e

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// gateTimeout is the default limit of a wait in the gate.
const gateTimeout = 100 * time.Second

// deletionRatio bounds how much longer the removal of waiting pods may take than that of running pods. From 0.91 to
// 1.32 were measured.
const deletionRatio = 1.5

// A Deployment deleted while its pods wait at the gate is gone as soon as one with running pods,
// with every hook and every runc.
func TestDeleteWhileWaiting(t *testing.T) {
	repeated(t, func(t *testing.T) string {
		const herd, limit = 8, 3
		d := startDaemon(t, placesForAll...)
		ns := namespace(t)
		deploy(t, ns, "runs", herd, herdPod(0, newLatch(t).holds))
		eventually(t, "all run", func() bool { return len(begun(t, ns)) == herd })
		running := deletion(t, ns, "runs")

		d.configure(t, "{throttleConfig: {maxConcurrent: {value: 3}, noProgressAfter: 0s}}")
		deploy(t, ns, "waits", herd, herdPod(0, newLatch(t).holds))
		eventually(t, "pods wait at the gate", func() bool { return d.status(t).Gate.Waiters == herd-limit })
		require.NotEmpty(t, hooks(t), "waiting hooks")
		waiting := deletion(t, ns, "waits")
		eventually(t, "no hook and no runc is left", func() bool { return len(hooks(t)) == 0 })
		d.idle(t)
		assert.Zero(t, d.status(t).Gate.Waiters)
		ratio := waiting.Seconds() / running.Seconds()
		figure(t, "%d pods gone %.1f s after their Deployment, with %d at the gate; %.1f s if all run; ratio %.2f",
			herd, waiting.Seconds(), herd-limit, running.Seconds(), ratio)
		return above("ratio of the time until all pods are gone to that of running pods", ratio, deletionRatio)
	})
}

// deletion deletes the Deployment and returns the time until all pods are gone.
func deletion(t *testing.T, ns, deployment string) time.Duration {
	t.Helper()
	begin, background := time.Now(), metav1.DeletePropagationBackground
	require.NoError(t, node.Client().AppsV1().Deployments(ns).Delete(t.Context(), deployment, metav1.DeleteOptions{PropagationPolicy: &background}))
	watched(t, "all pods are gone", func() bool { return len(pods(t, ns)) == 0 })
	return time.Since(begin)
}
