//go:build e2e && full

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

// With many in line before the database, the loans have to grow.
func TestDeadlockOfFortyAndADatabase(t *testing.T) {
	deadlock(t, 40, func(*testing.T, string) {})
}

// With a startup probe, liveness probes wait for it: the herd is paced just the same.
func TestHerdWithStartupProbe(t *testing.T) {
	pacedHerd(t, withLiveness, withStartup)
}

// The same herd without the daemon: what the problem is. It ends after four
// minutes, ready or not.
func TestHerdUnpaced(t *testing.T) {
	ns := namespace(t)
	begin := time.Now()
	deploy(t, ns, "herd", herdPods, herdPod(herdCPUSeconds, withLiveness))
	const limit = 4 * time.Minute
	for !allReady(t, ns, herdPods) && time.Since(begin) < limit {
		after(t.Context(), time.Second)
	}
	ready, kills := 0, int32(0)
	for _, p := range pods(t, ns) {
		if condition(p, corev1.PodReady) {
			ready++
		}
		kills += restarts(p)
	}
	took := time.Since(begin)
	figure(t, "unpaced: %d of %d ready after %.0f s, %d restarts by probes", ready, herdPods, took.Seconds(), kills)
	assert.Positive(t, kills, "an unpaced herd that nobody kills shows no problem on this machine")
}
