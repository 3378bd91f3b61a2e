//go:build e2e

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A rate of one start every two seconds, two at once after a quiet time: containerd
// starts no more in any span of time, and no fewer over all.
func TestRateLimit(t *testing.T) {
	const herd, every, burst = 8, 2 * time.Second, 2
	d := startDaemon(t)
	d.configure(t, "{throttleConfig: {rateLimit: {fillFactor: 2s, burst: 2}}}")
	ns := namespace(t)
	deploy(t, ns, "herd", herd, herdPod(0))
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, herd) })
	all := containers(t, ns)
	require.Len(t, all, herd)
	for i, first := range all {
		for more, last := range all[i:] {
			// One may take until the next is due, from its turn to its process.
			due := time.Duration(more-burst) * every
			assert.Greater(t, last.started.Sub(first.started), due, "%d starts, from that of %s to that of %s", more+1, first.pod, last.pod)
		}
	}
	took, due := all[herd-1].started.Sub(all[0].started), (herd-burst)*every
	figure(t, "%d starts in %.1f s; at the rate: %.1f s", herd, took.Seconds(), due.Seconds())
	assert.Less(t, took, 2*due, "from the first start to the last")
}
