package plugin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

func TestSlowHandlersHoldNoPod(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, with(func(o *Options) { o.Hold = maxHold }))
	n.occupy("holder")
	n.d.handler.Took(time.Now(), "RunPodSandbox", time.Hour)
	p := n.pod("job", restarted("Never")).runs()
	_, err := p.create("app")
	require.ErrorContains(t, err, string(reasons.Concurrency))
	assert.False(t, n.holding(), "a handler waited")
}

// A pod that may wait for hours must not use up the short time that handlers may wait in all.
func TestARunningBoundIsNotWaitedForInAHandler(t *testing.T) {
	t.Parallel()
	n := newNode(t, noLimit, with(func(o *Options) { o.Hold, o.RefuseAt = maxHold, waiting.RefuseContainer }))
	n.enforce(map[string]string{"t1": t1})
	n.pod("first", factsOf(ofT1, map[string]int64{"cpu": 200})).runs().startsNow("app")
	p := n.pod("job", restarted("Never"), factsOf(ofT1, map[string]int64{"cpu": 100})).runs()
	_, err := p.create("app")
	require.ErrorContains(t, err, string(reasons.PolicyRunning))
	assert.False(t, n.holding(), "a handler waited")
}
