//go:build e2e && full

package e2e

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
)

// mostWaitingCost is the share of the node's CPUs that 110 pods may cost that wait by refusal: kubelet tries each of them
// again every 10 to 15 seconds, whatever it is told. Measured: 21.2 %, beside other labs.
const mostWaitingCost = 0.25

// 110 pods that wait without a waiting room, while two hold the slots for long, cost kubelet, containerd, its shims and
// the daemon less than a quarter of the node's CPU time.
func TestWaitingByRefusalCostsLittle(t *testing.T) {
	const waiting, held, measured = 110, 2, 90 * time.Second
	d, ns, slow := startDaemon(t), namespace(t), newLatch(t)
	d.configure(t, longConfig(fmt.Sprintf("maxConcurrent: {value: %d}", held)))
	parts := []*lab.Service{node.Kubelet, node.Containerd, d.Service}
	used := func() float64 { return cpuOf(t, parts) + shimsCPU(t, node.Runtime).Seconds() }
	deploy(t, ns, "holds", held, herdPod(0.1, slow.holds))
	eventually(t, "the slots are taken", func() bool { return begunOf(t, ns, "holds-") == held })
	after(t.Context(), 10*time.Second) // the rest of the starts' work
	before := used()
	after(t.Context(), measured/3)
	idle := (used() - before) / (measured / 3).Seconds()

	deploy(t, ns, "waits", waiting, herdPod(0.1))
	eventually(t, "all other pods wait", func() bool { return len(d.status(t).Waiting) == waiting })
	after(t.Context(), 30*time.Second) // until kubelet's retries are spread out
	refused := d.status(t).Refused
	before = used()
	after(t.Context(), measured)
	cost := ((used()-before)/measured.Seconds() - idle) / float64(runtime.NumCPU())
	s := d.status(t)
	n := s.Refused.Sandbox + s.Refused.Container - refused.Sandbox - refused.Container
	figure(t, "%d pods wait by refusal: %d refusals in %s cost %.1f %% of %d CPUs beyond the idle node's %.2f CPUs",
		waiting, n, measured, 100*cost, runtime.NumCPU(), idle)
	require.Positive(t, n, "refusals: without one there is nothing to check")
	assert.Less(t, cost, mostWaitingCost, "share of the node's CPUs")
}
