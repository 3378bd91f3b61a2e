//go:build e2e && full

package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A single pod that waits behind the herd of another namespace starts before that herd by default,
// and after it with fairness None.
func TestNamespacesTakeTurns(t *testing.T) {
	const herd = 3
	// All pods wait at the gate, so that none is passed because kubelet has not retried it yet.
	d := startDaemon(t, "--gate-timeout", "1h")
	for fairness, c := range map[string]struct {
		field string
		place int // of the single pod among those that waited, from 0
	}{
		"default": {"", 0},
		"None":    {"fairness: None, ", herd},
	} {
		t.Run(fairness, func(t *testing.T) {
			d.configure(t, "{"+c.field+"throttleConfig: {maxConcurrent: {value: 2}, noProgressAfter: 0s}}")
			many, one := namespace(t), namespace(t)
			slow, slower := newLatch(t), newLatch(t)
			createPod(t, many, "slow", herdPod(0, slow.holds))
			createPod(t, many, "slower", herdPod(0, slower.holds))
			eventually(t, "two pods hold the slots", func() bool { return len(begun(t, many)) == 2 })
			deploy(t, many, "herd", herd, herdPod(0.1))
			eventually(t, "the herd waits at the gate", func() bool { return d.status(t).Gate.Waiters == herd })
			createPod(t, one, "single", herdPod(0.1))
			eventually(t, "the single pod waits at the gate", func() bool { return d.status(t).Gate.Waiters == herd+1 })
			require.Len(t, begun(t, many), 2, "pods that have begun")

			slow.release(t) // from now on, one pod starts at a time
			eventually(t, "all that waited are ready", func() bool { return readyOf(t, many, "herd") == herd && isReady(t, one, "single") })
			slower.release(t)
			eventually(t, "all pods are ready", func() bool { return allReady(t, many, herd+2) })
			single, before := containers(t, one)[0].started, 0
			for _, c := range containers(t, many)[2:] {
				if c.started.Before(single) {
					before++
				}
			}
			assert.Equal(t, c.place, before, "pods of the herd that began before the single pod")
			d.idle(t)
		})
	}
}
