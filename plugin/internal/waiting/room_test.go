package waiting

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Only the first pod that the full gate keeps in the room is asked for. A pod that is asked for counts as one that comes
// soon, and a limiter that expects a herd of them gives fewer reservations.
func TestAFullGateStopsThePodsBehindIt(t *testing.T) {
	t.Parallel()
	c, limiter := aLimitedChooser(Options{Gate: GateOptions{Timeout: time.Hour}})
	now := time.Now()
	limiter.Configure(now, throttle.Settings{MaxConcurrent: 1})
	earlier := limiter.Join(now, throttle.Request{UID: "earlier"})
	earlier.TryStart(now)
	now = now.Add(time.Second)
	earlier.End(now, reasons.Ready)
	var herd []*roomWaiter
	for i := range 40 {
		w := &roomWaiter{ticket: limiter.Join(now, throttle.Request{UID: fmt.Sprint(i)}), early: true, near: make(chan struct{})}
		c.Room.enter(w)
		herd = append(herd, w)
	}
	leave := func(want int) {
		_, again := c.Room.Round(now, limiter.Snapshot(now).Waiting)
		assert.Equal(t, now.Add(roomRound), again)
		for i, w := range herd {
			assert.Equal(t, i < want, isClosed(w.near), i)
			if i < want {
				c.Room.leave(w)
			}
		}
	}
	const room = 1 + 20/2 // the free slot, and starts of a second in half of roomAhead
	leave(room)
	leave(room)
	now = now.Add(10 * time.Second) // those that left have not come, and are expected no longer
	leave(2 * room)
}

// Otherwise pods of a higher priority could keep it in the room for ever.
func TestAnOverduePodLeavesTheRoomThoughTheGateIsFull(t *testing.T) {
	t.Parallel()
	c, limiter := aLimitedChooser(Options{Gate: GateOptions{Timeout: time.Hour}})
	now := time.Now()
	limiter.Configure(now, throttle.Settings{MaxConcurrent: 1, MaxWait: time.Minute})
	enter := func(r throttle.Request) *roomWaiter {
		w := &roomWaiter{ticket: limiter.Join(now, r), early: true, near: make(chan struct{})}
		c.Room.enter(w)
		return w
	}
	first, second := enter(throttle.Request{UID: "first"}), enter(throttle.Request{UID: "second"})
	now = now.Add(time.Minute)
	for i := range 9 {
		enter(throttle.Request{UID: fmt.Sprint(i), Priority: 1})
	}
	last := enter(throttle.Request{UID: "last"})
	c.Room.Round(now, limiter.Snapshot(now).Waiting)
	assert.True(t, isClosed(first.near))
	assert.False(t, isClosed(second.near), "only one at a time passes the others")
	assert.False(t, isClosed(last.near), "it is not overdue")
}
