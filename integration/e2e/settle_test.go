//go:build e2e && full

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// A pod without probes gives its slot back when its containers have run for settleTime, and its
// start ends as Settled. By containerd's times the next pod does not start sooner.
func TestAPodWithoutProbesSettles(t *testing.T) {
	const settle = 15 * time.Second
	d := startDaemon(t)
	d.configure(t, "{settleTime: 15s, throttleConfig: {maxConcurrent: {value: 1}, noProgressAfter: 0s}}")
	ns := namespace(t)
	createPod(t, ns, "settles", herdPod(0, withoutProbes))
	eventually(t, "a pod holds the slot", func() bool { return len(begun(t, ns)) == 1 })
	createPod(t, ns, "next", herdPod(0.1))
	eventually(t, "the next pod is ready", func() bool { return isReady(t, ns, "next") })
	d.idle(t)
	all, ends := containers(t, ns), d.ended(t, ns)
	require.Len(t, all, 2, "containers, each created once")
	assert.Equal(t, reasons.Settled, ends["settles"].Reason)
	assert.Equal(t, reasons.Ready, ends["next"].Reason, "a pod with a probe")
	held := all[1].started.Sub(all[0].created)
	figure(t, "the next pod began %.1f s after the container without probes was created, with a settleTime of %s", held.Seconds(), settle)
	assert.GreaterOrEqual(t, held, settle, "from the container of the pod without probes to the process of the next")

	const busy = "pod_pacemaker_settled_busy_total"
	assert.Zero(t, d.metric(t, busy), "what settled used no CPU")
	createPod(t, ns, "burns", herdPod(600, withoutProbes))
	eventually(t, "its start is over", func() bool { return d.ended(t, ns)["burns"].Reason == reasons.Settled })
	assert.InDelta(t, 1, d.metric(t, busy), 0, "it settled while it kept a CPU busy")
}
