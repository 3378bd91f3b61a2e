//go:build e2e && full

package e2e

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
)

// mostWaitingCost is the share of the node's CPUs that 110 pods may cost that wait by refusal.
const mostWaitingCost = 0.10

// 110 pods that wait without a waiting room, while two hold the slots for long, cost kubelet, containerd, its shims and
// the daemon less than a tenth of the node's CPU time, and the limit that adapts counts nothing of it as load of starts:
// it stays above one.
func TestWaitingByRefusalCostsLittle(t *testing.T) {
	const waiting, held, measured = 110, 2, 90 * time.Second
	for name, throttle := range map[string]string{"at a limit": "maxConcurrent: {value: 2}", "adaptive": "adaptive: {max: 2}"} {
		t.Run(name, func(t *testing.T) {
			d, ns, slow := startDaemon(t), namespace(t), newLatch(t)
			d.configure(t, longConfig(throttle))
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
			figure(t, "%d pods wait by refusal, %s: %d refusals in %s cost %.1f %% of %d CPUs beyond the idle node's %.2f CPUs; limit %d",
				waiting, name, n, measured, 100*cost, runtime.NumCPU(), idle, s.Limit)
			require.Positive(t, n, "refusals: without one there is nothing to check")
			assert.Less(t, cost, mostWaitingCost, "share of the node's CPUs")
			assert.Equal(t, held, s.Limit, "the limit while pods wait")
			slow.release(t)
			require.NoError(t, node.Client().AppsV1().Deployments(ns).Delete(t.Context(), "waits", metav1.DeleteOptions{}))
		})
	}
}
