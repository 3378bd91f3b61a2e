//go:build e2e && full

package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// With a kubelet that gives up after 20 seconds, the daemon reads this time and holds no pod in the
// gate for more than 0.8 of it. The default would be 100 s, and kubelet would fail each waiting
// container.
func TestGateTimeoutFollowsKubelet(t *testing.T) {
	const timeout = 20 * time.Second
	d, slow := heldByKubeletConfig(t, timeout)
	ns := namespace(t)
	createPod(t, ns, "waits", herdPod(0.1))
	eventually(t, "the waiting pod is ready", func() bool { return isReady(t, ns, "waits") })
	slow.release(t)

	all := containers(t, ns)
	require.Len(t, all, 1, "kubelet created the container once")
	waited := all[0].started.Sub(all[0].created)
	figure(t, "kubelet waits for %s, the pod waited for %.1f s", timeout, waited.Seconds())
	assert.Greater(t, waited, timeout*7/10, "the wait in the gate, as long as the timeout allows")
	assert.Zero(t, restarts(pods(t, ns)[0]))
	assertNotRefused(t, ns)
	d.idle(t)
}

// heldByKubeletConfig sets kubelet's timeout for the runtime, and runs the daemon with kubelet's
// configuration and one slot. A pod holds the slot until the release.
func heldByKubeletConfig(t *testing.T, timeout time.Duration) (*daemon, latch) {
	t.Helper()
	require.NoError(t, node.RestartKubelet(t.Context(), func(config map[string]any) { config["runtimeRequestTimeout"] = timeout.String() }))
	t.Cleanup(func() { assert.NoError(t, node.RestartKubelet(context.Background(), nil)) })
	d := startDaemon(t, "--kubelet-config", node.KubeletConfigFile())
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 1}, noProgressAfter: 0s}}")
	ns, slow := namespace(t), newLatch(t)
	createPod(t, ns, "holds", herdPod(0, slow.holds))
	eventually(t, "a pod holds the slot", func() bool { return len(begun(t, ns)) == 1 })
	return d, slow
}
