//go:build e2e && full

package e2e

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// A limit of the load average, of the node or for each core, holds pods while the load is above it,
// and says so with the load and the limit. When the limit is raised, they start.
func TestTheLoadAverageHoldsPods(t *testing.T) {
	const herd, limit = 4, 0.01
	d := startDaemon(t)
	for name, c := range map[string]struct {
		perCore   bool
		threshold float64
	}{
		"of the node":   {false, limit},
		"for each core": {true, limit * float64(runtime.NumCPU())},
	} {
		t.Run(name, func(t *testing.T) {
			quiet := burn(t)
			d.configure(t, fmt.Sprintf("{throttleConfig: {loadAvg: {maxLoad: \"%g\", perCore: %t}}}", limit, c.perCore))
			ns := namespace(t)
			eventually(t, "the daemon measures the load", func() bool { return d.held(t) == reasons.LoadAverage })
			quiet() // the load falls below the limit only minutes later
			deploy(t, ns, "herd", herd, herdPod(0.1))
			eventually(t, "all pods wait for the load", func() bool { return countReason(d.status(t).Waiting, reasons.LoadAverage) == herd })
			first := d.status(t).Waiting[0]
			assert.InDelta(t, c.threshold, first.Held.Threshold, 1e-9)
			assert.Greater(t, first.Held.Measured, c.threshold)
			eventually(t, "an event on the pod names the load", func() bool {
				return slices.ContainsFunc(ownEvents(t, ns, first.Name), func(e corev1.Event) bool {
					return e.Reason == "WaitingToStart" && strings.Contains(e.Message, fmt.Sprintf("of %g", c.threshold))
				})
			})
			raised := time.Now()
			kubectl(t, "patch", "pacemakerconfig", d.status(t).Config.Name, "--type=merge", "-p", `{"spec":{"throttleConfig":{"loadAvg":{"maxLoad":10000}}}}`)
			eventually(t, "all pods are ready", func() bool { return allReady(t, ns, herd) })
			for _, c := range containers(t, ns) {
				assert.True(t, c.started.After(raised), "%s started %s before the limit was raised", c.pod, raised.Sub(c.started))
			}
			for pod, start := range d.ended(t, ns) {
				assert.Equal(t, reasons.WithinLimits, start.Admission, pod)
			}
			d.idle(t)
		})
	}
}
