//go:build e2e

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// With a rate of one start every two seconds and a burst of two, containerd starts no pod before the rate allows as many
// since the herd was created, and about as many as it allows.
func TestRateLimit(t *testing.T) {
	const herd, every, burst = 8, 2 * time.Second, 2
	d := startDaemon(t)
	d.configure(t, "{throttleConfig: {rateLimit: {fillFactor: 2s, burst: 2}}}")
	ns, begin := namespace(t), time.Now()
	deploy(t, ns, "herd", herd, herdPod(0))
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, herd) })
	all := containers(t, ns)
	require.Len(t, all, herd)
	for i, c := range all {
		due := time.Duration(i+1-burst) * every
		assert.Greater(t, c.started.Sub(begin), due, "start %d, of %s", i+1, c.pod)
	}
	took, due := all[herd-1].started.Sub(all[0].started), (herd-burst)*every
	figure(t, "%d starts in %.1f s; at the rate: %.1f s", herd, took.Seconds(), due.Seconds())
	assert.Less(t, took, 2*due, "from the first start to the last")
}
