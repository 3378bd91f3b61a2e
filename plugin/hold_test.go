package plugin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

func TestHoldBudgetIsAShareOfWallTime(t *testing.T) {
	t.Parallel()
	var b holdBudget
	now := time.Unix(0, 0)
	assert.Equal(t, 200*time.Millisecond, b.take(now, 200*time.Millisecond))
	assert.Equal(t, holdSaved-200*time.Millisecond, b.take(now, time.Hour), "no more than was saved up")
	assert.Zero(t, b.take(now, time.Second), "used up")
	now = now.Add(time.Second)
	assert.Equal(t, 100*time.Millisecond, b.take(now, time.Second), "a tenth of the time that passed")
	now = now.Add(time.Hour)
	assert.Equal(t, holdSaved, b.take(now, time.Hour), "what is saved up is bounded")
}

func TestHoldBudgetTakesBackWhatWasNotUsed(t *testing.T) {
	t.Parallel()
	var b holdBudget
	now := time.Unix(0, 0)
	got := b.take(now, holdSaved)
	b.giveBack(got - 50*time.Millisecond)
	assert.Equal(t, holdSaved-50*time.Millisecond, b.take(now, time.Hour))
	b.giveBack(-time.Second)
	b.giveBack(time.Hour)
	assert.Equal(t, holdSaved, b.take(now, time.Hour))
}

func TestHoldBudgetIgnoresAClockThatGoesBack(t *testing.T) {
	t.Parallel()
	var b holdBudget
	now := time.Unix(1000, 0)
	b.take(now, holdSaved)
	assert.Zero(t, b.take(now.Add(-time.Hour), time.Second))
}

func TestSlowHandlersHoldNobody(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, with(func(o *Options) { o.Hold = MaxHold }))
	n.occupy("holder")
	n.p.hold.charge(time.Now(), time.Hour)
	p := n.pod("job", restarted("Never")).runs()
	_, err := p.create("app")
	require.ErrorContains(t, err, string(throttle.Concurrency))
	assert.False(t, n.holding(), "a handler waited")

	var b holdBudget
	now := time.Unix(0, 0)
	b.charge(now, time.Hour)
	assert.Zero(t, b.take(now.Add(10*holdSaved), time.Hour))
	assert.Equal(t, 100*time.Millisecond, b.take(now.Add(10*holdSaved+time.Second), time.Hour), "an hour is forgiven soon")
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
