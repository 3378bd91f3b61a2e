//go:build e2e && full

package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// On every supported line of containerd, a herd with many refused pods starts after containerd was
// killed and started again. A containerd that keeps what is left of a refused sandbox would never
// start again, so the daemon refuses nothing at the sandbox there, whatever the flags say.
func TestRefusalsNeverKeepTheRuntimeFromStarting(t *testing.T) {
	for name, keeps := range map[string]bool{
		"containerd@2.0": true, "containerd@2.1": true, "containerd@2.2": true,
		"containerd@2.2.9": false, "containerd@2.3": false, "containerd@1.7": false,
	} {
		t.Run(name, func(t *testing.T) {
			// With this many refusals kubelet has retried pods: a second sandbox of the same name is
			// what keeps containerd from starting.
			const herd, refusals = 8, 3 * 8
			onNode(t, name, "")
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
		})
	}
}
