package starts

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The manual names these times.
func TestTheTimingOfTheDaemon(t *testing.T) {
	t.Parallel()
	timing := DefaultTiming()
	assert.Equal(t, 10*time.Second, timing.RunFor)
	assert.Equal(t, 2*time.Second, timing.Rejoin)
	assert.Zero(t, timing.RoomReturns, "unless the room is in place")
}
