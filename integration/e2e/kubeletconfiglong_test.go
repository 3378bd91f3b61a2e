//go:build e2e && full

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// With a kubelet that waits for five minutes, a pod waits in the gate for longer than
// the two minutes after which kubelet gives up by default, and starts in its turn.
func TestLongWaitsInTheGate(t *testing.T) {
	const timeout, waits = 5 * time.Minute, 130 * time.Second
	d, slow := heldByKubeletConfig(t, timeout)
	ns := namespace(t)
	createPod(t, ns, "waits", herdPod(0.1))
	eventually(t, "it waits at the gate", func() bool { return created(t, ns, "waits") })
	after(t.Context(), waits)
	require.Empty(t, begun(t, ns), "it waits still")
	slow.release(t)
	eventually(t, "it is ready", func() bool { return isReady(t, ns, "waits") })

	all := containers(t, ns)
	require.Len(t, all, 1, "kubelet had to make it but once")
	waited := all[0].started.Sub(all[0].created)
	figure(t, "a pod waited in the gate for %.0f s", waited.Seconds())
	assert.Greater(t, waited, waits)
	assert.Zero(t, restarts(pods(t, ns)[0]))
	assertNotRefused(t, ns)
	d.idle(t)
}
