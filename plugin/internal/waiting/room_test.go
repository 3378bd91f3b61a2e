package waiting

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/starts"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// enters makes a process wait in the room for a pod of this priority, which can wait in the gate.
func (n *node) enters(uid string, priority int32) *roomWaiter {
	process, _ := n.o.Starts.EnterRoom(time.Now(), starts.Identity{UID: uid, Namespace: "default", Name: uid}, podwatch.Pod{UID: uid, Priority: priority}, time.Now(), time.Time{}, true)
	w := &roomWaiter{ticket: process.Ticket, early: true, reserved: make(chan struct{})}
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
		n.longest(12 * time.Second)
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
		time.Sleep(20 * time.Second) // those that left have not come, and are expected no longer
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

// A pod that leaves the room with its slot does not have the next one while a pod that must leave without it stays in the
// room before it: nothing says yet how long starts take, so that one has a place in the gate only once the slot is free.
func TestPodsThatLeaveWithTheirSlotPassNoneInTheRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := aStillNode(t, gateTimeout(100*time.Second))
		limit := func(starts int) {
			n.configure("spec: {}", throttle.Settings{MaxConcurrent: starts, StartTimeout: time.Hour, MaxWait: time.Hour})
		}
		limit(1)
		withSlot := func(uid string) *roomWaiter {
			w := n.enters(uid, 0)
			w.early = false
			t.Cleanup(w.ticket.Wait(time.Now()))
			return w
		}
		holder := withSlot("holder")
		n.round()
		assert.True(t, isClosed(holder.ticket.Decided()))
		n.Room.leave(holder)
		first, second, third, fourth := n.enters("first", 0), withSlot("second"), n.enters("third", 0), withSlot("fourth")
		n.round()
		assert.False(t, isClosed(first.reserved))

		limit(2)
		assert.False(t, isClosed(second.ticket.Decided()), "the slot is for the first")
		n.round()
		assert.True(t, isClosed(first.reserved))
		n.Room.leave(first)
		stop := first.ticket.Wait(time.Now())
		defer stop()
		assert.NotEqual(t, isClosed(first.ticket.Decided()), isClosed(second.ticket.Decided()), "one of the two has the slot")
		n.round()
		assert.False(t, isClosed(third.reserved))
		assert.False(t, isClosed(fourth.ticket.Decided()))
	})
}
