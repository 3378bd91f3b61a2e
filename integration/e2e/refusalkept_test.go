//go:build e2e

package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A herd with many refused pods starts after the runtime was killed and started again.
func TestTheRuntimeStartsAgainAfterRefusals(t *testing.T) {
	refusalsKeepNoRuntimeFromStarting(t, false)
}

// refusalsKeepNoRuntimeFromStarting kills and starts the runtime while pods are refused; keeps says whether this runtime
// keeps what is left of a refused sandbox.
func refusalsKeepNoRuntimeFromStarting(t *testing.T, keeps bool) {
	t.Helper()
	// With this many refusals kubelet has retried pods: a second sandbox of the same name is
	// what keeps containerd from starting.
	const herd, refusals = 8, 3 * 8
	d := startDaemon(t, "--refuse-at", "sandbox")
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 1}, noProgressAfter: 0s}}")
	ns, hold := namespace(t), newLatch(t)
	deploy(t, ns, "herd", herd, herdPod(0.1, hold.holds))
	eventually(t, "many pods are refused", func() bool {
		r := d.status(t).Refused
		return r.Sandbox+r.Container >= refusals
	})
	s := d.status(t)
	if keeps {
		assert.Zero(t, s.Refused.Sandbox, "refused at the sandbox")
		assert.Contains(t, s.Refused.NotAtSandbox, "keeps what is left of a refused sandbox")
	} else {
		assert.Positive(t, s.Refused.Sandbox, "refused at the sandbox")
		assert.Empty(t, s.Refused.NotAtSandbox)
	}

	require.NoError(t, node.Containerd.Kill(t.Context()))
	require.NoError(t, node.Containerd.Start(t.Context()), "containerd does not start again")
	hold.release(t)
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, herd) })
	now := d.status(t)
	figure(t, "containerd %s: started again after %d refusals at the sandbox, %d at the container; in all %d and %d; all %d pods ready",
		now.Runtime.Version, s.Refused.Sandbox, s.Refused.Container, now.Refused.Sandbox, now.Refused.Container, herd)
}
