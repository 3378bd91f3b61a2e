package plugin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
)

const daemonSetsExempt = "spec: {throttleConfig: {maxConcurrent: {value: 1}}, exemptions: {daemonSets: {namespaces: [default]}}}"

func TestThePodWatchMayCatchUpWithinTheHold(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, holdsLong)
	holder := n.occupy("holder")
	p := n.strangePod("new")
	ran := make(chan error, 1)
	n.kept.Go(func() { ran <- p.run() })
	n.eventually("the handler holds", func() bool { held, _ := n.pods.holds(); return held > 0 })
	assert.Empty(t, ran)
	p.becomesKnown(func(pod *podwatch.Pod) { pod.Priority = 7 })
	require.NoError(t, <-ran)
	assert.Less(t, counted(t, n, "pod_pacemaker_handler_hold_seconds_total"), testTimeout.Seconds()/2, "the handler held only until the pod was known")
	assert.Equal(t, int32(7), n.view(p.uid).Priority, "the pod was known in time")
	a := p.waitsAtGate("app")
	holder.getsReady()
	a.succeeds()
}

// A wait for the pod watch would hold up every pod of the node.
func TestAPodThatNeedNotWaitIsNotHeldToBecomeKnown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config  string
		arrange func(*node, *testPod)
	}{
		"exempt": {daemonSetsExempt, func(_ *node, p *testPod) {
			p.spec.Labels = map[string]string{"pod-template-generation": "1"}
		}},
		"the pod watch is away": {oneAtATime, func(n *node, _ *testPod) { n.pods.goesAway() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, c.config, holdsLong)
			p := n.strangePod("stranger")
			c.arrange(n, p)
			p.runs().startsNow("app")
			held, _ := n.pods.holds()
			assert.Zero(t, held)
		})
	}
}

func TestWithoutAHoldNoHandlerWaits(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, with(func(o *Options) { o.Hold = 0 }))
	n.occupy("holder")
	for range 20 {
		if p := n.strangePod("stranger"); p.run() == nil {
			_, err := p.create("app")
			require.Error(t, err)
		}
	}
	assert.Zero(t, counted(t, n, "pod_pacemaker_handler_hold_seconds_total"))
}

func TestManyUnknownPodsHoldNoLongerThanTheirShare(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, with(func(o *Options) { o.Hold = maxHold }))
	n.occupy("holder")
	begin := time.Now()
	for range 40 { // they would hold for 40 s, and as long again for their containers
		if p := n.strangePod("stranger"); p.run() == nil {
			_, err := p.create("app")
			require.Error(t, err)
		}
	}
	held, longest := n.pods.holds()
	assert.LessOrEqual(t, held, (2*time.Second)+time.Duration(0.1*float64(time.Since(begin))))
	assert.LessOrEqual(t, longest, maxHold)
	assert.Positive(t, held)
}

// This test must not run beside other tests: NRI has one request timeout for the process.
func TestAHoldIsNeverLongerThanHalfTheRequestTimeout(t *testing.T) {
	const timeout = 2 * time.Second
	n := newNode(t, oneAtATime, holdsLong,
		onRuntime(func(o *runtimetest.Options) { o.RequestTimeout = timeout }))
	n.strangePod("stranger").runs()
	_, longest := n.pods.holds()
	assert.LessOrEqual(t, longest, timeout/2)
	assert.Positive(t, longest)
}
