// Package turns forecasts the turns of pods that wait with a process, at the expected pace. A turn also says when the
// process leaves if the daemon is gone, so that pods start one by one, in the order of the queue, and never all at once.
package turns

import (
	"slices"
	"sync"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// leaveTolerance is by how much a hook's time to leave may change before the hook is informed.
const leaveTolerance = time.Second

// mostTurns is how many turns are forecast at most, which bounds the cost.
const mostTurns = 1_000

// order returns the pods that wait with a process, in the order of the queue. Pods that a policy holds come last.
func order(s throttle.Snapshot) (uids []string) {
	for _, held := range []bool{false, true} {
		for _, v := range s.Waiting {
			if v.Present && (v.Held.Policy != throttle.GroupKey{}) == held {
				uids = append(uids, v.UID)
			}
		}
	}
	return uids
}

// Turn is when a pod that waits with a process is expected to start. The zero value: it has no turn yet.
type Turn struct {
	position, of int           // its position counts from 1
	pace         time.Duration // between two turns
	from         time.Time     // when the turns were counted
}

// RestartGrace is how long the first in the queue waits for another daemon. A daemon that crashed or is upgraded is back
// in that time.
const RestartGrace = 10 * time.Second

// noticeGrace is how long it may take from the count of the turns until hooks notice that the daemon hangs, and begin
// to leave.
const noticeGrace = wire.SilenceMost + leaveTolerance

// LeaveAt returns when a hook leaves if the daemon is gone and no other takes its place: at its turn at the expected
// pace. If the last turn were after the deadline, all hooks share the time that is left instead.
func (t Turn) LeaveAt(deadline time.Time) time.Time {
	grace := min(RestartGrace, t.left(deadline)/4)
	return t.from.Add(grace + time.Duration(t.position)*t.Step(deadline))
}

// Step returns the time between two hooks that leave.
func (t Turn) Step(deadline time.Time) time.Duration {
	left := t.left(deadline)
	return min(t.pace, (left-min(noticeGrace, left/2))/time.Duration(t.of+1))
}

func (t Turn) left(deadline time.Time) time.Duration { return max(0, deadline.Sub(t.from)) }

// Said is the turn that a hook was sent last. The zero value: none.
type Said struct {
	leaveAt  time.Time
	position int
}

// Changed reports whether a hook has to be sent its turn, and notes that it is. A hook without a turn is sent nothing.
func (h *Said) Changed(t Turn, deadline time.Time) bool {
	at := t.LeaveAt(deadline)
	if t.position == 0 || (h.position == t.position && h.leaveAt.Sub(at).Abs() <= leaveTolerance) {
		return false
	}
	*h = Said{at, t.position}
	return true
}

// Position returns the pod's position, from 1; zero: it has no turn yet.
func (t Turn) Position() int { return t.position }

// Board holds the turns. Make it with NewBoard. It is safe for concurrent use.
type Board struct {
	mu    sync.Mutex
	turns map[string]Turn // by UID
	from  time.Time       // when they were counted
	pace  time.Duration   // expected at that time
	moved chan struct{}
}

// NewBoard returns a board without turns.
func NewBoard() *Board { return &Board{moved: make(chan struct{})} }

// Of returns the turn of a pod, and a channel that is closed when the turns change.
func (b *Board) Of(uid string) (Turn, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.turns[uid], b.moved
}

// Post counts the turns from a snapshot of the limiter, and wakes the waiters if the change matters to hooks. It returns
// when to call it again, even if nothing happens: old turns would all be over when the daemon goes away. Zero: no pod
// waits.
func (b *Board) Post(now time.Time, held throttle.Snapshot) (again time.Time) {
	return b.post(now, order(held), held.Pace)
}

// post is Post for these pods, in order.
func (b *Board) post(now time.Time, uids []string, pace time.Duration) (again time.Time) {
	of := len(uids)
	uids = uids[:min(of, mostTurns)]
	b.mu.Lock()
	defer b.mu.Unlock()
	recount := b.outdatedLocked(now, uids, pace)
	if recount {
		b.from, b.pace = now, pace
	}
	isNew := func(uid string) bool { return b.turns[uid].position == 0 }
	if recount || len(uids) != len(b.turns) || slices.ContainsFunc(uids, isNew) {
		b.turns = make(map[string]Turn, len(uids))
		for i, uid := range uids {
			b.turns[uid] = Turn{position: i + 1, of: of, pace: b.pace, from: b.from}
		}
		close(b.moved)
		b.moved = make(chan struct{})
	}
	if of == 0 {
		return time.Time{}
	}
	return b.recountLocked()
}

// recountLocked returns when the turns are counted anew: when the first of them is over. b.mu must be held.
func (b *Board) recountLocked() time.Time { return b.from.Add(max(leaveTolerance, b.pace)) }

// outdatedLocked reports whether to count the turns anew: the queue moved, or should have moved, or has another pace.
// b.mu must be held.
func (b *Board) outdatedLocked(now time.Time, uids []string, pace time.Duration) bool {
	if len(uids) == 0 {
		return false
	}
	if len(b.turns) == 0 || !now.Before(b.recountLocked()) || (pace-b.pace).Abs() > b.pace/4 {
		return true
	}
	for i, uid := range uids {
		if before, ok := b.turns[uid]; ok && before.position != i+1 {
			return true
		}
	}
	return false
}
