//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// crashing makes the pod exit with 1 each time it would be ready.
func crashing(spec *corev1.PodSpec) {
	withoutProbes(spec)
	spec.Containers[0].Args = append(spec.Containers[0].Args, "--exit", "1")
}

// The number of pods that crash, of those whose restarts wait before the good pods come, and of the
// good pods.
const (
	stormPods = 20
	stormWait = 10
	stormGood = 5
	// stormFirst bounds the restarts that begin while a good pod waits at the gate: those that the free slots take
	// between the creation of its container and the question of its hook. Without their order it is all that wait.
	stormFirst = 4
)

// While 20 pods crash and restart, first starts of other pods go before the restarts that wait, and
// the restarts are paced too.
func TestCrashStorm(t *testing.T) {
	const limit = 2
	// With the usual time in the gate, fewer pods may wait there the longer the slow pods hold the slots. How long that
	// is depends on when kubelet restarts 10 pods.
	d := startDaemon(t, placesForAll...)
	// Slots are not lent, and a pod without probes does not count as started before it has crashed.
	d.configure(t, "{settleTime: 2m, throttleConfig: {maxConcurrent: {value: 2}, noProgressAfter: 0s}}")
	ns := namespace(t)
	f := follow(t, ns)
	deploy(t, ns, "storm", stormPods, herdPod(1, crashing))
	eventually(t, "every crashing pod has crashed, and most have restarted", func() bool {
		back := int32(0)
		for _, p := range pods(t, ns) {
			back += restarts(p)
		}
		return back >= stormPods
	})
	slow := newLatch(t)
	deploy(t, ns, "slow", limit, herdPod(0, slow.holds))
	eventually(t, "the slow pods hold the slots", func() bool { return begunOf(t, ns, "slow-") == limit })
	waiting := func(name string) int {
		return len(slices.DeleteFunc(d.waitingNames(t), func(pod string) bool { return !strings.HasPrefix(pod, name+"-") }))
	}
	eventually(t, "restarts wait", func() bool { return waiting("storm") >= stormWait })
	before, atGate := waiting("storm"), 0
	isGood := func(pod string) bool { return strings.HasPrefix(pod, "good-") }
	deploy(t, ns, "good", stormGood, herdPod(1))
	eventually(t, "the good pods wait behind them, some at the gate", func() bool {
		atGate = len(slices.DeleteFunc(listed(t, ns), func(c *runtimeapi.Container) bool {
			return !isGood(c.Labels["io.kubernetes.pod.name"]) || c.State != runtimeapi.ContainerState_CONTAINER_CREATED
		}))
		return waiting("good") == stormGood && atGate >= limit
	})
	released := time.Now()
	slow.release(t)
	eventually(t, "the good pods are ready", func() bool { return readyOf(t, ns, "good") == stormGood })

	// containerd reports an exit only when it has removed the process's shim, half a second later, and the daemon sees
	// it at once.
	moment, all := time.Now(), []start{}
	eventually(t, "containerd knows how the starts ended that began until now", func() bool {
		all = slices.DeleteFunc(f.starts(t), func(s start) bool { return s.started.After(moment) })
		return !slices.ContainsFunc(all, func(s start) bool { return s.until.IsZero() })
	})
	good := slices.DeleteFunc(slices.Clone(all), func(s start) bool { return !isGood(s.pod) })
	early, overtaking := 0, 0
	for _, s := range all {
		beside := s.beside(all)
		assert.Less(t, len(beside), limit, "pods starting when %s began at %s: %v", s.pod, s.started.Format("15:04:05.000"), beside)
		if !strings.HasPrefix(s.pod, "storm-") || s.started.Before(released) {
			continue
		}
		waited := func(g start) bool { return s.started.Before(g.started) }
		if slices.ContainsFunc(good, waited) {
			early++
		}
		if slices.ContainsFunc(good, func(g start) bool { return waited(g) && s.started.After(g.created) }) {
			overtaking++
		}
	}
	figure(t, "%d starts by containerd's times, none over the limit of %d; %d of %d good pods were at the gate when %d restarts waited; %d restarts began while one of them was, %d before the last of all",
		len(all), limit, atGate, stormGood, before, overtaking, early)
	assert.GreaterOrEqual(t, len(all), stormPods+limit+stormGood, "starts that containerd reports")
	assert.LessOrEqual(t, overtaking, stormFirst, "restarts that began while a good pod was at the gate")
	repeats := d.metric(t, fmt.Sprintf(`pod_pacemaker_start_seconds_count{reason=%q}`, reasons.Exited))
	assert.GreaterOrEqual(t, repeats, float64(stormPods), "restarts that the daemon counts as starts")
}
