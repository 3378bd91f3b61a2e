package waiting

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/pods"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// enters makes a process wait in the room for a pod of this priority, which can wait in the gate.
func (n *node) enters(uid string, priority int32) *roomWaiter {
	ticket, _ := n.o.Starts.Arrive(time.Now(), pods.Pod{UID: uid, Namespace: "default", Name: uid}, podwatch.Pod{UID: uid, Priority: priority}, true, time.Now())
	w := &roomWaiter{ticket: ticket, early: true, reserved: make(chan struct{})}
	n.Room.enter(w)
	return w
}

// round does a round of the room, and returns when the next is due.
func (n *node) round() (again time.Time) {
	_, again = n.Room.Round(time.Now(), n.snapshot().Waiting)
	return again
}

// Only the first pod that the full gate keeps in the room is asked for. A pod that is asked for counts as one that
// comes soon, and a limiter that expects a herd of them gives fewer reservations.
func TestAFullGateStopsThePodsBehindIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := aStillNode(t, gateTimeout(100*time.Second))
		n.observed(time.Second)
		var herd []*roomWaiter
		for i := range 40 {
			herd = append(herd, n.enters(fmt.Sprint(i), 0))
		}
		leave := func(want int) {
			assert.Equal(t, time.Now().Add(roomRound), n.round())
			for i, w := range herd {
				assert.Equal(t, i < want, isClosed(w.reserved), i)
				if i < want {
					n.Room.leave(w)
				}
			}
		}
		const room = 1 + 100/12 // the free slot, and starts of 12 s before the deadline in the gate
		leave(room)
		leave(room)
		time.Sleep(10 * time.Second) // those that left have not come, and are expected no longer
		leave(2 * room)
	})
}

// Otherwise pods of a higher priority could keep it in the room for ever.
func TestAnOverduePodLeavesTheRoomThoughTheGateIsFull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := aStillNode(t, gateTimeout(100*time.Second))
		n.configure("spec: {}", throttle.Settings{MaxConcurrent: 1, MaxWait: time.Minute})
		first, second := n.enters("first", 0), n.enters("second", 0)
		time.Sleep(time.Minute)
		for i := range 9 {
			n.enters(fmt.Sprint(i), 1)
		}
		last := n.enters("last", 0)
		n.round()
		assert.True(t, isClosed(first.reserved))
		assert.False(t, isClosed(second.reserved), "only one at a time passes the others")
		assert.False(t, isClosed(last.reserved), "it is not overdue")
	})
}
