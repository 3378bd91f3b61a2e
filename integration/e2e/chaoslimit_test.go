//go:build e2e

package e2e

import (
	"slices"
	"time"

	"github.com/stretchr/testify/assert"
)

// chaosLimit is how many pods may start at a time. chaosUnpaced bounds the pods that start unpaced
// after each kill of the daemon or of containerd, because no daemon is connected for a while.
// kubelet creates or retries these pods within a few seconds, out of chaosPods. There are more of
// them if kubelet was killed just before, because it then creates all its pods anew at once.
const (
	chaosLimit   = 3
	chaosUnpaced = 15
)

// outageOf returns the index of the outage in which no daemon could hold the container, or -1.
func (c *chaos) outageOf(s start) int {
	return slices.IndexFunc(c.outages, func(o outage) bool { return o.missed(s.created, s.started) })
}

// reportedReady reports whether kubelet restarted after other began and before s began. A restarted
// kubelet reports pods ready before it probes them, and the daemon then ends their starts.
func (c *chaos) reportedReady(other, s start) bool {
	return slices.ContainsFunc(c.restarted, func(at time.Time) bool { return other.started.Before(at) && at.Before(s.started) })
}

// assertLimit checks each start that the daemon could hold: when its process began, fewer than the
// limit were starting. Starts during an outage count. Starts that kubelet reported ready too early,
// and those of which containerd does not know the end, do not count, but their number is bounded, too.
func (c *chaos) assertLimit() {
	c.t.Helper()
	all := c.follower.starts(c.t, func(pod string) time.Time { return c.removed[deploymentOf(pod)] })
	held, reported, unpaced := 0, 0, make([]int, len(c.outages))
	for _, s := range all {
		if in := c.outageOf(s); in >= 0 {
			unpaced[in]++
			continue
		}
		held++
		beside := s.beside(all)
		under := len(slices.DeleteFunc(beside, func(other start) bool { return other.guessed || c.reportedReady(other, s) }))
		assert.Less(c.t, under, chaosLimit, "pods starting when %s began at %s", s.pod, s.started.Format("15:04:05.000"))
		reported = max(reported, len(beside)-under)
	}
	assert.LessOrEqual(c.t, reported, chaosLimit*len(c.restarted), "pods that a restarted kubelet reported ready too early")
	most := 0
	for i, n := range unpaced {
		most = max(most, n)
		assert.LessOrEqual(c.t, n, chaosUnpaced, "unpaced starts from %s to %s", c.outages[i].from.Format("15:04:05.0"), c.outages[i].to.Format("15:04:05.0"))
	}
	assert.Greater(c.t, held, len(all)/2, "paced starts of %d: too few to judge", len(all))
	figure(c.t, "%d of %d starts within the limit of %d; beside one of them at most %d that a restarted kubelet reported ready too early; in each of %d outages at most %d started unpaced",
		held, len(all), chaosLimit, reported, len(unpaced), most)
}
