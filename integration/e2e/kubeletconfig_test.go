//go:build e2e && full

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// With a kubelet that gives up after 20 seconds, the daemon reads this time and lets no pod into the gate whose turn may
// come later than after 0.8 of it: here, when the pod before it has held its slot for all but 16 seconds of startTimeout.
// With the default of 100 s the pod would come into the gate at once, and kubelet would fail its container.
func TestGateTimeoutFollowsKubelet(t *testing.T) {
	const timeout, startTimeout = 20 * time.Second, time.Minute
	d, slow := heldByKubeletConfig(t, timeout, startTimeout)
	ns := namespace(t)
	createPod(t, ns, "waits", herdPod(0.1))
	eventually(t, "the waiting pod is refused", func() bool { return d.status(t).Refused.Sandbox > 0 })
	eventually(t, "the waiting pod is ready", func() bool { return isReady(t, ns, "waits") })
	slow.release(t)

	all := containers(t, ns)
	require.Len(t, all, 1, "kubelet created the container once")
	waited := all[0].started.Sub(all[0].created)
	figure(t, "kubelet waits for %s, the pod waited in the gate for %.1f s", timeout, waited.Seconds())
	assert.Less(t, waited, timeout)
	assert.Zero(t, restarts(pods(t, ns)[0]))
	d.idle(t)
}

// heldByKubeletConfig sets kubelet's timeout for the runtime, and runs the daemon with kubelet's
// configuration and one slot. A pod holds the slot until the release, or for startTimeout.
func heldByKubeletConfig(t *testing.T, timeout, startTimeout time.Duration) (*daemon, latch) {
	t.Helper()
	require.NoError(t, node.RestartKubelet(t.Context(), func(config map[string]any) { config["runtimeRequestTimeout"] = timeout.String() }))
	t.Cleanup(func() { assert.NoError(t, node.RestartKubelet(context.Background(), nil)) })
	d := startDaemon(t, "--kubelet-config", node.KubeletConfigFile())
	d.configure(t, fmt.Sprintf("{startTimeout: %s, throttleConfig: {maxConcurrent: {value: 1}, noProgressAfter: 0s}}", startTimeout))
	ns, slow := namespace(t), newLatch(t)
	createPod(t, ns, "holds", herdPod(0, slow.holds))
	eventually(t, "a pod holds the slot", func() bool { return len(begun(t, ns)) == 1 })
	return d, slow
}
