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
	for n.p.budget.allows(to) {
		now = now.Add(time.Second)
		n.p.budget.add(now, time.Second, 0)
	}
	// The breach is as of now, however long ago the calls seem.
	n.p.budget.mu.Lock()
	n.p.budget.since, n.p.budget.breached, n.p.budget.judged = time.Now(), time.Now(), time.Now()
	n.p.budget.mu.Unlock()
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
