//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// shadowRatio bounds how much longer the pods of a herd may take to run in Shadow than without the
// daemon.
const shadowRatio = 1.3

// In Shadow, a herd that never gets ready runs as soon as without the daemon, although the only
// slot is taken: kubelet sees no refusal, and the daemon reports which pods would have waited. One
// herd takes up to a third longer than another, so the medians of three are compared.
func TestShadowHoldsNothing(t *testing.T) {
	repeated(t, func(t *testing.T) string {
		without := untilAllRun(t)
		d := startDaemon(t)
		d.configure(t, "{mode: Shadow, startTimeout: 1h, throttleConfig: {maxConcurrent: {value: 1}, noProgressAfter: 0s}}")
		holds := namespace(t)
		createPod(t, holds, "holds", herdPod(0, newLatch(t).holds))
		eventually(t, "the slot is taken", func() bool { return len(begun(t, holds)) == 1 })
		with := untilAllRun(t)
		d.assertWouldWait(t)
		figure(t, "%d pods run after %.2f s, after %.2f s without the daemon, ratio %.2f", shadowed, with, without, with/without)
		return above("ratio of the time until all run to that without the daemon", with/without, shadowRatio)
	})
}

// shadowed is how many pods start at the same time, and shadowHerds how often.
const (
	shadowed    = 6
	shadowHerds = 3
)

// assertWouldWait runs one more herd, and checks what the daemon reports of all its pods, and of no
// other: in the status, in the log, in the metrics, and when asked why.
func (d *daemon) assertWouldWait(t *testing.T) {
	t.Helper()
	ns := namespace(t)
	deploy(t, ns, "herd", shadowed, herdPod(0, newLatch(t).holds))
	eventually(t, "all run", func() bool { return len(begun(t, ns)) == shadowed })
	var waiting []string
	for _, p := range d.status(t).Waiting {
		waiting = append(waiting, p.Name)
		assert.True(t, p.Shadow && p.Reason == reasons.Concurrency, "%s waits for %s, in shadow: %t", p.Name, p.Reason, p.Shadow)
	}
	slices.Sort(waiting)
	require.Equal(t, begun(t, ns), waiting, "pods that the daemon reports as waiting")
	for _, pod := range waiting {
		assert.Contains(t, d.why(t, ns, pod), "mode Shadow: the pod was not held")
	}
	log := d.logged(t)
	assert.Empty(t, slices.DeleteFunc(waiting, func(pod string) bool {
		return strings.Contains(log, fmt.Sprintf("pod %s/%s would wait, but the mode is Shadow", ns, pod))
	}), "pods that the log does not name")
	assert.InDelta(t, (shadowHerds+1)*shadowed, d.metric(t, `pod_pacemaker_unpaced_total{reason="Shadow"}`), 0, "starts that would have waited")
	assertNotRefused(t, ns)
}

// untilAllRun creates herds of pods that do not get ready, one after the other, and deletes each once
// all its pods run. It returns the median of the seconds from the creation of the first pod to the
// process of the last.
func untilAllRun(t *testing.T) float64 {
	t.Helper()
	var took []time.Duration
	for range shadowHerds {
		ns, begin := namespace(t), time.Now()
		deploy(t, ns, "herd", shadowed, herdPod(0, newLatch(t).holds))
		eventually(t, "all run", func() bool { return len(begun(t, ns)) == shadowed })
		all := containers(t, ns)
		require.Len(t, all, shadowed, "containers, each created once")
		assertNotRefused(t, ns)
		took = append(took, all[shadowed-1].started.Sub(begin))
		deletion(t, ns, "herd")
	}
	return middle(took)
}
