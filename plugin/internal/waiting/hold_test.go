package waiting

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestHoldBudgetIsAShareOfWallTime(t *testing.T) {
	t.Parallel()
	b := newBudget(holdShare, holdSaved)
	now := time.Unix(0, 0)
	assert.Equal(t, holdSaved, b.left(now))
	b.charge(now, 200*time.Millisecond)
	assert.Equal(t, holdSaved-200*time.Millisecond, b.left(now))
	b.charge(now, holdSaved-200*time.Millisecond)
	assert.Zero(t, b.left(now), "the budget is used up")
	b.charge(now, -time.Second)
	assert.Zero(t, b.left(now), "the rest is never negative")
	now = now.Add(time.Second)
	assert.Equal(t, 100*time.Millisecond, b.left(now), "a tenth of the time that passed")
	now = now.Add(time.Hour)
	assert.Equal(t, holdSaved, b.left(now), "the savings have a bound")
	b.charge(now, holdSaved)
	assert.Zero(t, b.left(now.Add(-time.Minute)), "the clock was set back")
	b.charge(now, time.Hour)
	assert.LessOrEqual(t, b.left(now.Add(10*holdSaved)), time.Duration(0))
	assert.Equal(t, 100*time.Millisecond, b.left(now.Add(10*holdSaved+time.Second)), "an hour of holds is forgiven")
}

func TestALongHandlerIsChargedBesideShortOnes(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	for range 1000 {
		b := newBudget(holdShare, holdSaved)
		var handlers sync.WaitGroup
		for range 8 {
			handlers.Go(func() {
				for range 500 {
					b.charge(now, time.Microsecond)
				}
			})
		}
		handlers.Go(func() { b.charge(now, time.Hour) })
		handlers.Wait()
		assert.Equal(t, -holdSaved, b.left(now), "the debt has its bound")
	}
}
