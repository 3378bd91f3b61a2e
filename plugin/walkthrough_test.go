package plugin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// This is the walk-through of kube-throttler's documentation, step by step, with its numbers.
func TestTheWalkThroughOfKubeThrottler(t *testing.T) {
	t.Parallel()
	n := newNode(t, noLimit)
	threshold := func(cpu string) {
		n.enforce(map[string]string{"t1": "{selector: {terms: [{podSelector: {matchLabels: {throttle: t1}}}]}, limits: {running: {pods: 5, requests: {cpu: " + cpu + ", memory: 1Gi}}}}"})
	}
	pod := func(name, resource string, milli int64) *testPod {
		return n.pod(name, factsOf(ofT1, map[string]int64{resource: milli}))
	}
	throttled := func() []string {
		told := observe.AdminPolicies(n.d.starts.Policies.State(), n.d.starts.Groups(time.Now()))
		require.Len(t, told, 1)
		require.Len(t, told[0].Groups, 1)
		return told[0].Groups[0].Throttled
	}

	threshold("200m")
	pod("pod1", "cpu", 200).runs().startsNow("app")
	assert.Equal(t, []string{"running.requests.cpu"}, throttled())

	second := pod("pod2", "cpu", 300)
	require.Error(t, second.run())
	second.becomes(throttle.Waiting, reasons.Unadmittable) // 300m can never fit into 200m

	pod("pod1m", "memory", 512<<20*1000).runs().startsNow("app")
	assert.EqualValues(t, 2, n.usage("t1").Running.Pods)

	threshold("700m")
	second.runs().startsNow("app")
	assert.Empty(t, throttled(), "200m are left")
	assert.EqualValues(t, 500, n.usage("t1").Running.Requests["cpu"])

	third := pod("pod3", "cpu", 300)
	require.Error(t, third.run())
	third.becomes(throttle.Waiting, reasons.PolicyRunning)
	assert.Equal(t, 1, n.usage("t1").Waiting)
}
