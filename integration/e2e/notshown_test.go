//go:build e2e && full

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// With incrementBy, starts count against the limit of the load average before the load shows them:
// two pods start, and the third waits until what they count has faded. The numbers are far above the
// load of any machine.
func TestStartsCountBeforeTheLoadShowsThem(t *testing.T) {
	// Two starts count 198,000, which fades with a time constant of a minute, and is below the limit of 100,000 no sooner
	// than 60 s * ln 1.98 after the first of them.
	const herd, atOnce, fades = 3, 2, 40900 * time.Millisecond
	d := startDaemon(t)
	d.configure(t, "{throttleConfig: {loadAvg: {maxLoad: 100000, incrementBy: 99000}}}")
	ns := namespace(t)
	deploy(t, ns, "herd", herd, herdPod(0.1))
	said := ""
	eventually(t, "all pods are ready, and one has waited for the load", func() bool {
		for _, p := range d.status(t).Waiting {
			if p.Reason == reasons.LoadAverage {
				said = p.Held.Detail
			}
		}
		return allReady(t, ns, herd) && said != ""
	})
	d.idle(t)
	all, turns := containers(t, ns), d.ended(t, ns)
	require.Len(t, all, herd)
	first := all[0].started
	for _, turn := range turns {
		assert.Equal(t, reasons.WithinLimits, turn.Admission, turn.Name)
		if turn.Admitted.Before(first) {
			first = turn.Admitted
		}
	}
	held := all[atOnce].started.Sub(first)
	figure(t, "%d pods began within %.1f s of the first turn, the third after %.1f s; it waited for %s",
		atOnce, all[atOnce-1].started.Sub(first).Seconds(), held.Seconds(), said)
	assert.Greater(t, held, fades, "from the first turn to the process of the third pod")
	assert.Contains(t, said, "for starts not measured yet")
}
