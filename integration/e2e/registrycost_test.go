//go:build e2e && full

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// With imagePullPolicy Always, kubelet asks the registry at each try to make a container. Pods that wait in the room are not
// tried, and ask once, when their turn is near.
func TestPodsInTheRoomDoNotAskTheRegistryAgain(t *testing.T) {
	const waiting, span = 20, time.Minute
	startRegistry(t)
	asked := func() int {
		log, err := os.ReadFile(filepath.Join(node.LogDir(), "registry.log"))
		require.NoError(t, err)
		return strings.Count(string(log), "manifest herd-0\n")
	}
	requests := map[string]int{}
	for _, name := range []string{"refused", "in the room"} {
		t.Run(name, func(t *testing.T) {
			start := startDaemon
			if name == "in the room" {
				start = startDaemonWithRoom
			}
			d := start(t)
			d.configure(t, "{maxWait: 1h, throttleConfig: {maxConcurrent: {value: 1}, noProgressAfter: 0s}}")
			ns, hold := namespace(t), newLatch(t)
			deploy(t, ns, "herd", waiting+1, herdPod(0.1, hold.holds, func(spec *corev1.PodSpec) {
				spec.Containers[0].Image, spec.Containers[0].ImagePullPolicy = registryAddress+"/herd-0:1", corev1.PullAlways
			}))
			eventually(t, "all other pods wait", func() bool {
				s := d.status(t)
				return len(s.Starting) == 1 && len(s.Waiting) == waiting
			})
			before := asked()
			after(t.Context(), span)
			requests[name] = asked() - before
			s := d.status(t)
			figure(t, "%d pods with imagePullPolicy Always that wait for %s, %s: %d requests for a manifest; in all %d refusals at the sandbox, %d at the container",
				waiting, span, name, requests[name], s.Refused.Sandbox, s.Refused.Container)
			hold.release(t)
			eventually(t, "all pods are ready", func() bool { return allReady(t, ns, waiting+1) })
		})
	}
	assert.Less(t, 4*requests["in the room"], requests["refused"], "only pods that leave the room for the gate ask")
}
