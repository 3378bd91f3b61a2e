//go:build e2e && full

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	startcosts "github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
)

// The daemon measures what starts take in the cgroups of pods that idle and then burn CPU, keeps it
// across a restart, and expects it of the next start of the same Deployment.
func TestWhatAStartTakesIsLearned(t *testing.T) {
	const herd, burns, idles = 4, 2.0, 6 * time.Second
	d := startDaemon(t)
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 1}, noProgressAfter: 0s}}")
	ns := namespace(t)
	spec := herdPod(burns, waiting(idles))
	deploy(t, ns, "learned", herd, spec)
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, herd) })
	d.idle(t)
	learned := costOf(t, d, ns+"/Deployment/learned template=")
	figure(t, "%d starts of %.0f CPU-seconds after %.0f s were learned as %.2f +- %.2f after %.1f +- %.1f, %.1f s alone, peak %.1f cores",
		learned.Count, burns, idles.Seconds(), learned.CPU.Mean, learned.CPU.Deviation, learned.Idle.Mean, learned.Idle.Deviation, learned.Alone(), learned.Peak.Mean)
	assert.Equal(t, herd, learned.Count)
	assert.InDelta(t, burns, learned.CPU.Mean, burns/2, "CPU-seconds, including the creation of a container")
	assert.InDelta(t, idles.Seconds(), learned.Idle.Mean, idles.Seconds()/2, "idle seconds before the pod burns")
	assert.InDelta(t, 1, learned.Peak.Mean, 0.5, "cores")

	require.NoError(t, d.Stop(t.Context()))
	require.NoError(t, d.Start(t.Context()))
	assert.Equal(t, learned, costOf(t, d, ns+"/Deployment/learned template="), "after a restart of the daemon")

	slow := newLatch(t)
	createPod(t, ns, "holds", herdPod(0, slow.holds))
	eventually(t, "the slot is taken", func() bool { return len(d.status(t).Starting) == 1 })
	_, err := node.Client().AppsV1().Deployments(ns).Patch(t.Context(), "learned", types.MergePatchType,
		[]byte(fmt.Sprintf(`{"spec":{"replicas":%d}}`, herd+1)), metav1.PatchOptions{})
	require.NoError(t, err)
	eventually(t, "the next pod waits", func() bool { return len(d.status(t).Waiting) == 1 })
	next := d.status(t).Waiting[0]
	require.NotNil(t, next.Cost)
	assert.Equal(t, "Owner", next.Cost.Basis)
	assert.Equal(t, learned.CPU, next.Cost.CPU)
	assert.Contains(t, d.why(t, next.Namespace, next.Name), "learned from 4 starts")
	slow.release(t)
	polled(t, time.Second, "all pods are ready", func() bool { return allReady(t, ns, herd+2) })
}

// costOf returns the cost learned under the only key with that prefix.
func costOf(t *testing.T, d *daemon, begins string) (found startcosts.Cost) {
	t.Helper()
	all, err := d.admin.Costs(t.Context())
	require.NoError(t, err)
	n := 0
	for key, cost := range all.Costs {
		if strings.HasPrefix(key, begins) {
			found, n = cost, n+1
		}
	}
	require.Equal(t, 1, n, "keys that begin with %s: %v", begins, all.Costs)
	return found
}
