package plugin

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// slowHandlers plays handlers that are too slow, up to a stage.
func (n *node) slowHandlers(to budgetStage) {
	now := time.Now().Add(-2 * time.Minute)
	n.p.budget.mu.Lock()
	n.p.budget.since = time.Time{}
	n.p.budget.mu.Unlock()
	for n.p.budget.allows(to) {
		now = now.Add(time.Second)
		n.p.budget.add(now, time.Second, 0)
	}
	// It stays so, whatever is called until the test ends.
	n.p.budget.judgeNobody()
	n.p.budget.mu.Lock()
	defer n.p.budget.mu.Unlock()
	n.p.budget.breached, n.p.budget.judged = n.p.budget.since, time.Now()
}

func TestSlowHandlersHoldNobody(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, with(func(o *Options) { o.Hold = MaxHold }))
	n.occupy("holder")
	n.slowHandlers(holdsStopped)
	p := n.pod("job", restarted("Never")).runs()
	_, err := p.create("app")
	require.ErrorContains(t, err, string(throttle.Concurrency))
	assert.False(t, n.holding(), "a handler waited")
	n.eventually("it is said", func() bool { return counted(t, n, "pod_pacemaker_handler_budget_stage") == 1 })
}

func TestSlowHandlersRefuseNobodyAndTheGateStays(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	holder := n.occupy("holder")
	n.slowHandlers(refusalsStopped)
	job := n.pod("job", restarted("Never")).runs()
	job.startsNow("app") // it cannot wait in the gate
	assert.InDelta(t, 1, counted(t, n, "pod_pacemaker_unpaced_total"), 0)
	job.getsReady()

	var waiting []*attempt
	for i := range 6 { // more than there is room for
		waiting = append(waiting, n.pod(fmt.Sprintf("waits-%d", i)).runs().waitsAtGate("app"))
	}
	assert.Zero(t, n.p.refusedSandboxes.Load()+n.p.refusedContainers.Load())
	holder.getsReady()
	n.startOneByOne(waiting)
}

// A bound of those that run stands however slow the handlers are: whom it holds is
// refused, neither held in a handler nor sent to the gate, and does not start unpaced.
func TestSlowHandlersPassNoRunningBound(t *testing.T) {
	t.Parallel()
	n := newNode(t, noLimit, with(func(o *Options) { o.Hold = MaxHold }))
	n.enforce(map[string]string{"t1": t1})
	first := n.pod("first", factsOf(ofT1, map[string]int64{"cpu": 200})).runs()
	first.startsNow("app")
	first.getsReady()

	n.slowHandlers(refusalsStopped)
	gated := n.pod("gated", factsOf(ofT1, map[string]int64{"cpu": 100})).runs()
	ungated := n.pod("ungated", restarted("Never"), factsOf(ofT1, map[string]int64{"cpu": 300})).runs()
	for range 2 {
		_, err := gated.create("app")
		require.ErrorContains(t, err, string(throttle.PolicyRunning))
		_, err = ungated.create("app")
		require.ErrorContains(t, err, string(throttle.Unadmittable))
	}
	require.EqualValues(t, 1, n.usage("t1").Running.Pods)
	n.pod("other", restarted("Never"), factsOf(nil, nil)).runs().startsNow("app")

	n.enforce(map[string]string{"t1": "{selector: {terms: [{podSelector: {matchLabels: {throttle: t1}}}]}, limits: {running: {requests: {cpu: 350m}}}}"})
	gated.startsNow("app")
}

// A wait of hours is no use of the short time that handlers may wait in all.
func TestARunningBoundIsNotWaitedForInAHandler(t *testing.T) {
	t.Parallel()
	n := newNode(t, noLimit, with(func(o *Options) { o.Hold, o.RefuseAt = MaxHold, RefuseContainer }))
	n.enforce(map[string]string{"t1": t1})
	n.pod("first", factsOf(ofT1, map[string]int64{"cpu": 200})).runs().startsNow("app")
	p := n.pod("job", restarted("Never"), factsOf(ofT1, map[string]int64{"cpu": 100})).runs()
	_, err := p.create("app")
	require.ErrorContains(t, err, string(throttle.PolicyRunning))
	assert.False(t, n.holding(), "a handler waited")
}
