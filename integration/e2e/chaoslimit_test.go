//go:build e2e

package e2e

import (
	"slices"
	"time"

	"github.com/stretchr/testify/assert"
)

// chaosLimit is how many pods may start at a time, and chaosLetGo how many a daemon or a
// containerd may let go each time that it is killed: what is made until the daemon is
// connected again, nobody holds. These are the pods that kubelet makes or tries again in
// a few seconds, out of chaosPods; more where kubelet, too, was killed just before, and makes all of its pods
// anew at once.
const (
	chaosLimit = 3
	chaosLetGo = 15
)

// outageOf gives the outage in which nobody could hold a container; -1: there is none.
func (c *chaos) outageOf(s start) int {
	return slices.IndexFunc(c.outages, func(o outage) bool { return o.missed(s.created, s.started) })
}

// calledReady tells whether kubelet was restarted while a start was under way that another
// found beside it. A restarted kubelet calls pods ready before it probes them, which ends
// their starts for the daemon.
func (c *chaos) calledReady(other, s start) bool {
	return slices.ContainsFunc(c.restarted, func(at time.Time) bool { return other.started.Before(at) && at.Before(s.started) })
}

// assertLimit checks that whenever a process began that the daemon could hold, fewer than
// the limit were starting, those that nobody held included, and those left out that
// kubelet called ready too early; and that these, too, were few.
func (c *chaos) assertLimit() {
	c.t.Helper()
	all := c.follower.starts(c.t, func(pod string) time.Time { return c.removed[deploymentOf(pod)] })
	held, called, letGo := 0, 0, make([]int, len(c.outages))
	for _, s := range all {
		if in := c.outageOf(s); in >= 0 {
			letGo[in]++
			continue
		}
		held++
		beside := s.beside(all)
		under := len(slices.DeleteFunc(beside, func(other start) bool { return c.calledReady(other, s) }))
		assert.Less(c.t, under, chaosLimit, "that were starting when %s began at %s", s.pod, s.started.Format("15:04:05.000"))
		called = max(called, len(beside)-under)
	}
	assert.LessOrEqual(c.t, called, chaosLimit*len(c.restarted), "called ready too early by a restarted kubelet")
	most := 0
	for i, n := range letGo {
		most = max(most, n)
		assert.LessOrEqual(c.t, n, chaosLetGo, "let go from %s to %s", c.outages[i].from.Format("15:04:05.0"), c.outages[i].to.Format("15:04:05.0"))
	}
	assert.Greater(c.t, held, len(all)/2, "starts that were held, of %d: this shows nothing", len(all))
	figure(c.t, "%d of %d starts within the limit of %d; beside one of them at most %d that a restarted kubelet called ready too early; in %d outages at most %d were let go",
		held, len(all), chaosLimit, called, len(letGo), most)
}
