//go:build e2e && full

package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// With a limit of slots and one of the rate, a start that one of them refuses takes nothing from the
// other: pods that waited for a slot still find the saved starts, and pods that wait for the rate
// hold no slot. The rate saves up no other start while the scenario lasts.
func TestAStartThatOneLimitRefusesTakesNothing(t *testing.T) {
	const burst, more = 4, 3
	d := startDaemon(t, "--gate-timeout", "1h") // a pod waits at the gate only if the rate allows it in this time
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 1}, rateLimit: {fillFactor: 15m, burst: 4}, noProgressAfter: 0s}}")
	ns, slow := namespace(t), newLatch(t)
	createPod(t, ns, "holds", herdPod(0.1, slow.holds))
	eventually(t, "a pod holds the slot", func() bool { return len(begun(t, ns)) == 1 })
	deploy(t, ns, "saved", burst-1, herdPod(0.1))
	eventually(t, "pods wait for the slot", func() bool { return countReason(d.status(t).Waiting, reasons.Concurrency) == burst-1 })
	slow.release(t)
	eventually(t, "as many pods are ready as the rate has saved starts", func() bool { return allReady(t, ns, burst) })
	d.idle(t)

	rest, later := namespace(t), newLatch(t)
	deploy(t, rest, "rated", more, herdPod(0.1, later.holds))
	eventually(t, "pods wait for the rate, one of them at the gate", func() bool {
		s := d.status(t)
		return countReason(s.Waiting, reasons.Rate) == more && s.Gate.Waiters > 0
	})
	assert.Empty(t, d.status(t).Starting, "starts that hold a slot")
	kubectl(t, "patch", "pacemakerconfig", d.status(t).Config.Name, "--type=merge", "-p", `{"spec":{"throttleConfig":{"maxConcurrent":{"value":2},"rateLimit":null}}}`)
	eventually(t, "every slot is taken", func() bool { return len(begun(t, rest)) == more-1 })
	eventually(t, "the last pod waits for a slot", func() bool { return countReason(d.status(t).Waiting, reasons.Concurrency) == 1 })
	later.release(t)
	eventually(t, "all pods are ready", func() bool { return allReady(t, rest, more) })
	all := append(lives(t, ns), lives(t, rest)...)
	logLives(t, all[0].started, all)
	assert.Equal(t, 1, mostStarting(t, all[:burst]), "pods between the start of their process and ready, with one slot")
	assert.Equal(t, more-1, mostStarting(t, all[burst:]), "pods between the start of their process and ready, without the rate")
	assertUnharmed(t, all)
}
