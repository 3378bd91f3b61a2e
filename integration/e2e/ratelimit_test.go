//go:build e2e

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// With a rate of one start every two seconds and a burst of two, containerd starts no more in any
// span of time, and no fewer overall. A span begins with the first turn: from its turn to its process,
// a start may take any time on a busy node.
func TestRateLimit(t *testing.T) {
	const herd, every, burst = 8, 2 * time.Second, 2
	d := startDaemon(t)
	d.configure(t, "{throttleConfig: {rateLimit: {fillFactor: 2s, burst: 2}}}")
	ns := namespace(t)
	deploy(t, ns, "herd", herd, herdPod(0))
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, herd) })
	d.idle(t)
	all, turns := containers(t, ns), d.ended(t, ns)
	require.Len(t, all, herd)
	require.Len(t, turns, herd)
	longest := time.Duration(0)
	for i, first := range all {
		begin := turns[first.pod].Admitted
		require.False(t, begin.IsZero(), "the turn of %s", first.pod)
		assert.Less(t, begin, first.started, "the turn of %s and its process", first.pod)
		longest = max(longest, first.started.Sub(begin))
		for more, last := range all[i:] {
			if turn := turns[last.pod].Admitted; turn.Before(begin) {
				begin = turn
			}
			due := time.Duration(more+1-burst) * every
			assert.Greater(t, last.started.Sub(begin), due, "%d starts, those from %s to %s", more+1, first.pod, last.pod)
		}
	}
	took, due := all[herd-1].started.Sub(all[0].started), (herd-burst)*every
	figure(t, "%d starts in %.1f s, at most %.1f s after their turns; at the rate: %.1f s", herd, took.Seconds(), longest.Seconds(), due.Seconds())
	assert.Less(t, took, 2*due, "from the first start to the last")
}
