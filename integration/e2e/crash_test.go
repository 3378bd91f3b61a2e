//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// crashing makes the pod exit with 1 when it would be ready, again and again.
func crashing(spec *corev1.PodSpec) {
	withoutProbes(spec)
	spec.Containers[0].Args = append(spec.Containers[0].Args, "--exit", "1")
}

// How many pods crash, how many others start meanwhile, and how much longer these may
// take than on the idle node.
const (
	stormPods   = 20
	stormGood   = 5
	stormyRatio = 1.5
)

// While 20 pods crash and come back, pods that start for the first time do not
// queue behind them; and those that come back are paced too. What is too slow is
// measured again, both sides of it.
func TestCrashStorm(t *testing.T) {
	repeated(t, func(t *testing.T) string {
		idle, stormy := crashStorm(t)
		ratio := stormy.Seconds() / idle.Seconds()
		figure(t, "%d good pods ready after %.1f s beside %d that crash, %.1f s on the idle node, ratio %.2f",
			stormGood, stormy.Seconds(), stormPods, idle.Seconds(), ratio)
		return above("the ratio", ratio, stormyRatio)
	})
}

// crashStorm gives how long the good pods take on the idle node, and beside those that
// crash.
func crashStorm(t *testing.T) (idle, stormy time.Duration) {
	t.Helper()
	const limit = 2
	d := startDaemon(t)
	// No slot is lent, and no pod without probes counts as started before it has crashed.
	d.configure(t, "{settleTime: 2m, throttleConfig: {maxConcurrent: {value: 2}, noProgressAfter: 0s}}")
	ns := namespace(t)
	f := follow(t, ns)
	ready := func(name string) time.Duration {
		begin := time.Now()
		deploy(t, ns, name, stormGood, herdPod(2))
		eventually(t, "the good pods are ready", func() bool { return readyOf(t, ns, name) == stormGood })
		return time.Since(begin)
	}
	idle = ready("idle")
	d.idle(t)

	deploy(t, ns, "storm", stormPods, herdPod(1, crashing))
	eventually(t, "every pod has crashed, and most have come back", func() bool {
		back := int32(0)
		for _, p := range pods(t, ns) {
			if strings.HasPrefix(p.Name, "storm-") {
				back += restarts(p)
			}
		}
		return back >= stormPods
	})
	stormy = ready("good")
	all := f.starts(t, func(string) time.Time { return time.Time{} })
	for _, s := range all {
		assert.Less(t, len(s.beside(all)), limit, "that were starting when %s began at %s", s.pod, s.started.Format("15:04:05.000"))
	}
	figure(t, "%d starts by containerd's times, none beyond the limit of %d", len(all), limit)
	assert.GreaterOrEqual(t, len(all), stormPods+2*stormGood, "starts that containerd tells of")
	repeats := d.metric(t, fmt.Sprintf(`pod_pacemaker_start_seconds_count{reason=%q}`, reasons.Exited))
	assert.GreaterOrEqual(t, repeats, float64(stormPods), "crashes were starts of their own")
	return idle, stormy
}
