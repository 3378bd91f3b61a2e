package waiting

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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

func TestWhatAHandlerTookIsChargedToTheBudget(t *testing.T) {
	t.Parallel()
	var b holdBudget
	now := time.Unix(0, 0)
	b.charge(now, time.Hour)
	assert.Zero(t, b.take(now.Add(10*holdSaved), time.Hour))
	assert.Equal(t, 100*time.Millisecond, b.take(now.Add(10*holdSaved+time.Second), time.Hour), "an hour is forgiven soon")
}
