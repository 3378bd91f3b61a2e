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

// A Deployment that is deleted while its pods wait at the gate is gone at once,
// with every hook and every runc.
func TestDeleteWhileWaiting(t *testing.T) {
	const herd = 12
	d := startDaemon(t)
	// A few starts at a time, none of which ends soon.
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 4}}}")
	ns := namespace(t)
	deploy(t, ns, "herd", herd, herdPod(600))
	eventually(t, "pods wait at the gate", func() bool { return d.status(t).Gate.Waiters >= 5 })
	require.NotEmpty(t, hooks(t), "hooks that wait")

	begin := time.Now()
	background := metav1.DeletePropagationBackground
	require.NoError(t, node.Client().AppsV1().Deployments(ns).Delete(t.Context(), "herd", metav1.DeleteOptions{PropagationPolicy: &background}))
	eventually(t, "all pods are gone", func() bool { return len(pods(t, ns)) == 0 })
	took := time.Since(begin)
	assert.Less(t, took, gateTimeout/2, "time until all pods are gone: hooks that nobody ended would wait for their deadline")
	eventually(t, "no hook and no runc is left", func() bool { return len(hooks(t)) == 0 })
	d.idle(t)
	assert.Zero(t, d.status(t).Gate.Waiters)
	figure(t, "%d pods gone %.1f s after their Deployment, with at least 5 at the gate", herd, took.Seconds())
}
