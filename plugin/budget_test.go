package plugin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// calls adds n calls that each took so long, one every step, and gives the time after them.
func calls(b *handlerBudget, now time.Time, n int, took, step time.Duration) time.Time {
	for range n {
		now = now.Add(step)
		b.add(now, took, 0)
	}
	return now
}

func TestTheBudgetStopsHoldsThenRefusalsAndTakesThemUpAgain(t *testing.T) {
	t.Parallel()
	b := newHandlerBudget()
	now := time.Unix(1000, 0)
	now = calls(b, now, 100, time.Millisecond, 100*time.Millisecond)
	assert.True(t, b.allows(holdsStopped) && b.allows(refusalsStopped), "fast handlers")

	now = calls(b, now, 100, 2*handlerLatency, time.Second)
	assert.False(t, b.allows(holdsStopped))
	assert.False(t, b.allows(refusalsStopped), "it did not help to hold nobody")

	// Fast again: both stay off for the quiet time, and come back one by one.
	breached := now
	now = calls(b, now, 40, time.Millisecond, time.Second)
	var seen []budgetStage
	for now.Sub(breached) < 4*quietBefore {
		stage, _, again := b.judge(now)
		if len(seen) == 0 || seen[len(seen)-1] != stage {
			seen = append(seen, stage)
		}
		if again.IsZero() {
			break
		}
		assert.True(t, again.After(now))
		now = again
	}
	assert.Equal(t, []budgetStage{refusalsStopped, holdsStopped, budgetKept}, seen)
	assert.GreaterOrEqual(t, now.Sub(breached), 2*quietBefore)
	assert.True(t, b.allows(holdsStopped))
}

func TestTheFirstBreachStopsNoMoreThanHolds(t *testing.T) {
	t.Parallel()
	b := newHandlerBudget()
	calls(b, time.Unix(1000, 0), handlerFewest+5, 2*handlerLatency, 300*time.Millisecond)
	assert.False(t, b.allows(holdsStopped))
	assert.True(t, b.allows(refusalsStopped))
	assert.Len(t, b.changed, 1)
}

func TestASlowMomentBreaksNoBudget(t *testing.T) {
	t.Parallel()
	b := newHandlerBudget()
	now := calls(b, time.Unix(1000, 0), handlerFewest, time.Millisecond, 100*time.Millisecond)
	b.add(now.Add(2*time.Second), 3*time.Second, 0)
	now = calls(b, now.Add(2*time.Second), 5, time.Millisecond, 100*time.Millisecond)
	stage, use, again := b.judge(now)
	assert.Equal(t, budgetKept, stage, "%+v", use)
	assert.True(t, again.IsZero(), "nothing is to be asked again while it is kept")
}

func TestTooLittleIsKnownOfTooFewCalls(t *testing.T) {
	t.Parallel()
	b := newHandlerBudget()
	calls(b, time.Unix(1000, 0), handlerFewest-1, time.Second, time.Second)
	assert.True(t, b.allows(holdsStopped))
}

func TestManyQuickCallsBreakTheShare(t *testing.T) {
	t.Parallel()
	b := newHandlerBudget()
	now := calls(b, time.Unix(1000, 0), 2*handlerCalls, 5*time.Millisecond, 10*time.Millisecond)
	_, use, _ := b.judge(now)
	assert.False(t, b.allows(holdsStopped))
	assert.Less(t, use.p99, handlerLatency)
}

func TestHoldsAreNoCostOfTheHandlers(t *testing.T) {
	t.Parallel()
	b := newHandlerBudget()
	now := time.Unix(1000, 0)
	for range 100 {
		now = now.Add(time.Second)
		b.add(now, time.Millisecond, 900*time.Millisecond)
	}
	_, use, _ := b.judge(now)
	assert.True(t, b.allows(holdsStopped))
	assert.InDelta(t, 0.001, use.share, 0.0002)
	assert.Equal(t, time.Millisecond, use.p99)
}

func TestAClockThatGoesBackLeavesTheBudgetUsable(t *testing.T) {
	t.Parallel()
	b := newHandlerBudget()
	now := calls(b, time.Unix(100000, 0), 50, 2*handlerLatency, time.Second)
	assert.False(t, b.allows(holdsStopped))
	now = now.Add(-time.Hour)
	calls(b, now, 200, time.Millisecond, 2*time.Second)
	_, _, again := b.judge(now)
	assert.LessOrEqual(t, again.Sub(now), 2*time.Hour)
}
