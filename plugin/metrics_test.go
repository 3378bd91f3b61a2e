package plugin

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMetricsFollowTheStarts(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	holder := n.occupy("holder")
	a := n.pod("waits").runs().waitsAtGate("app")
	require.Error(t, n.pod("job", restarted("Never")).run())
	n.eventually("the gauges are up to date", func() bool {
		return counted(t, n, "pod_pacemaker_starting") == 1 && counted(t, n, "pod_pacemaker_waiting") == 2 && counted(t, n, "pod_pacemaker_gate_waiters") == 1
	})
	require.NoError(t, testutil.GatherAndCompare(n.d.metrics(), strings.NewReader(`
# HELP pod_pacemaker_refusals_total Refused sandboxes and containers, which kubelet tries again.
# TYPE pod_pacemaker_refusals_total counter
pod_pacemaker_refusals_total{at="sandbox",reason="Concurrency"} 1
`), "pod_pacemaker_refusals_total"))
	assert.InDelta(t, 0.2, counted(t, n, "pod_pacemaker_refusal_cpu_seconds_total"), 1e-9)
	assert.InDelta(t, 1, counted(t, n, "pod_pacemaker_connected"), 0)
	count, err := testutil.GatherAndCount(n.d.metrics(), "pod_pacemaker_config_generation")
	require.NoError(t, err)
	assert.Equal(t, 1, count)

	holder.getsReady()
	a.succeeds()
	a.pod.getsReady()
	n.eventually("both ends are counted", func() bool { return counted(t, n, "pod_pacemaker_start_seconds") == 2 })
	n.eventually("both admissions are counted", func() bool { return counted(t, n, "pod_pacemaker_wait_seconds") == 2 })
	n.eventually("no pod waits in the gate", func() bool { return counted(t, n, "pod_pacemaker_gate_waiters") == 0 })
	assert.Positive(t, counted(t, n, "pod_pacemaker_handler_seconds"))
}
