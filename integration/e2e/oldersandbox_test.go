//go:build e2e && full

package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// When a container of a pod that is older than the daemon starts again and has to wait, it waits in the
// gate if the running containerd made the pod, and is refused if containerd was restarted since. Then the
// pod's shim may be one of an earlier version. kubelet comes back to a refused container ever more seldom.
func TestARestartInAnOlderPodWaitsInTheGate(t *testing.T) {
	ns, first, second := namespace(t), newLatch(t), newLatch(t)
	createPod(t, ns, "older", herdPod(0, withoutProbes))
	eventually(t, "the older pod runs", func() bool { return allReady(t, ns, 1) })
	d := startDaemon(t, placesForAll...)
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 1}, noProgressAfter: 0s}}")
	ends := func() {
		for _, id := range runningContainers(t, ns, "older") {
			_, err := node.CRI().StopContainer(t.Context(), &runtimeapi.StopContainerRequest{ContainerId: id})
			require.NoError(t, err)
		}
	}

	// The older pod may still start when the daemon comes.
	holdsSlot := func(name string) bool {
		starting := d.status(t).Starting
		return len(starting) == 1 && starting[0].Name == name
	}
	createPod(t, ns, "holds", herdPod(0, first.holds))
	eventually(t, "a pod holds the slot", func() bool { return holdsSlot("holds") })
	ends()
	eventually(t, "the container of the older pod waits at the gate", func() bool { return created(t, ns, "older") })
	assertNotRefused(t, ns)
	first.release(t)
	eventually(t, "both pods are ready", func() bool { return allReady(t, ns, 2) })

	require.NoError(t, node.Containerd.Stop(t.Context()))
	require.NoError(t, node.Containerd.Start(t.Context()))
	eventually(t, "the daemon paces pods again", func() bool { return d.status(t).Ready })
	createPod(t, ns, "holds-again", herdPod(0, second.holds))
	eventually(t, "a pod holds the slot again", func() bool { return holdsSlot("holds-again") })
	ends()
	eventually(t, "the container of the older pod is refused", func() bool { return d.status(t).Refused.Container > 0 })
	assert.False(t, created(t, ns, "older"))
	second.release(t)
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, 3) })
}
