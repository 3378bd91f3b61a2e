package starts

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestExitsAreForgivenAfterALongRun(t *testing.T) {
	t.Parallel()
	var e exits
	now := time.Unix(0, 0)
	for want := 1; want < 4; want++ {
		e = e.and(now, time.Minute)
		assert.Equal(t, want, e.repeats)
	}
	e = e.and(now, forgivenAfter)
	assert.Zero(t, e.repeats, "the long run forgives the exits")
	assert.Equal(t, now, e.last)
	assert.Equal(t, 1, e.and(now, 0).repeats)
}
