//go:build e2e && full

package e2e

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Pods of one namespace whose containers fail before their hooks run keep no other pod out of the gate, however often
// kubelet makes them again.
func TestABrokenDeploymentLeavesTheGateOpen(t *testing.T) {
	const broken = 3
	d := startDaemon(t, placesForAll...)
	d.configure(t, "{maxWait: 1h, throttleConfig: {maxConcurrent: {value: 2}, noProgressAfter: 0s}}")
	tenant, ns, slow := namespace(t), namespace(t), newLatch(t)
	createPod(t, ns, "holds-1", herdPod(0, slow.holds))
	createPod(t, ns, "holds-2", herdPod(0, slow.holds))
	eventually(t, "the slots are held", func() bool { return len(begun(t, ns)) == 2 })
	deploy(t, tenant, "broken", broken, herdPod(0, badMount(t)))
	eventually(t, "each has failed, and kubelet has removed its first container", func() bool {
		failed := 0
		for _, p := range pods(t, tenant) {
			if cannotStart(&p) {
				failed++
			}
		}
		return failed == broken && !slices.ContainsFunc(listed(t, tenant), func(c *runtimeapi.Container) bool { return c.Metadata.Attempt == 0 })
	})
	assert.Empty(t, d.status(t).Gate.WhyNot)
	createPod(t, ns, "waits", herdPod(0.1))
	eventually(t, "a pod of another namespace waits at the gate", func() bool { return created(t, ns, "waits") })
	slow.release(t)
	eventually(t, "it is ready", func() bool { return isReady(t, ns, "waits") })
}
