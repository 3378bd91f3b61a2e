//go:build e2e && full

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// gateSlack is how long after its creation a container may take to reach the gate. Only then is it
// surely present.
const gateSlack = 4 * time.Second

// maxWaits is the metric of the pods that started over the limit because they had waited for long.
const maxWaits = `pod_pacemaker_wait_seconds_count{reason="MaxWait"}`

// All pods start in order and at most one start is over the limit, with far more pods than slots,
// deadlines that are too short, and two slow starts that hold the slots beyond the gate's deadline.
// Refusals and starts over the limit occur. Slots are not lent.
func TestDeadlines(t *testing.T) {
	const slow, herd, limit, gateWaits = 2, 40, 2, 10 * time.Second
	d := startDaemon(t, "--gate-timeout", gateWaits.String())
	d.configure(t, "{maxWait: 30s, throttleConfig: {maxConcurrent: {value: 2}, noProgressAfter: 0s}}")
	ns := namespace(t)
	begin, holding := time.Now(), newLatch(t)
	deploy(t, ns, "slow", slow, herdPod(0.1, holding.holds))
	eventually(t, "the slow pods hold the slots", func() bool { return len(d.status(t).Starting) == slow })
	deploy(t, ns, "herd", herd, herdPod(1))
	eventually(t, "a wait reaches its deadline", func() bool { return d.metric(t, maxWaits) > 0 })
	holding.release(t)
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, slow+herd) })
	d.idle(t)

	all := lives(t, ns)
	logLives(t, begin, all)
	assert.Len(t, all, slow+herd)
	assert.LessOrEqual(t, mostStarting(t, all), limit+1, "pods between the start of their process and ready")
	d.assertOrder(t, ns, all, gateWaits)

	s := d.status(t)
	maxWait, expired := d.metric(t, maxWaits), d.metric(t, gateExpired)
	assert.Greater(t, s.Refused.Sandbox+s.Refused.Container, uint64(5), "refusals")
	figure(t, "%d pods all ready after %.1f s; %d refused at the sandbox, %d at the container; over the limit %v for MaxWait; %v waits expired",
		slow+herd, lastReady(all).Sub(begin).Seconds(), s.Refused.Sandbox, s.Refused.Container, maxWait, expired)
}

// assertOrder checks that no pod started before a pod that joined the queue earlier and was present
// all the time. Pods that stood at the gate until their deadline are excepted: from the creation of
// their container by containerd until their process began. A hook gets its answer half a second
// before its deadline.
func (d *daemon) assertOrder(t *testing.T, namespace string, all []life, gateTimeout time.Duration) {
	t.Helper()
	ended := d.ended(t, namespace)
	checked := 0
	for _, late := range all {
		pod, ok := ended[late.pod.Name]
		if !assert.True(t, ok, "the daemon does not know %s", late.pod.Name) || late.started.Sub(late.created) >= gateTimeout-time.Second {
			continue
		}
		for _, early := range all {
			e := ended[early.pod.Name]
			if !e.Joined.Before(pod.Joined) {
				continue
			}
			checked++
			passedOver := early.created.Add(gateSlack).Before(late.started) && early.started.After(late.started.Add(gateSlack)) &&
				e.Admitted.After(pod.Admitted)
			assert.False(t, passedOver, "%s joined later and started before %s, which was present", late.pod.Name, early.pod.Name)
		}
	}
	assert.Greater(t, checked, len(all), "pairs of pods that were compared")
}
