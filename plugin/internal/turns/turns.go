// Package turns forecasts, for pods that wait with a process, when their turn is, at the expected pace, and
// when to leave if the daemon goes away: one by one, in their order, and never at once.
package turns

import (
	"slices"
	"sync"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// leaveTolerance is by how much a hook's time to leave may be wrong without the
// hook being told.
const leaveTolerance = time.Second

// mostTurns bounds what waiters are told of, and so what it costs.
const mostTurns = 1_000

// order returns the pods that wait with a process, in the order of the queue, and those that a
// policy holds after all others.
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

// Turn is when a pod that waits with a process would go on at the expected pace.
type Turn struct {
	position, of int           // its position counts from 1
	pace         time.Duration // between two of them
	from         time.Time     // what the turns are counted from
}

// RestartGrace is how long the first in line waits for another daemon: the time in
// which one that crashed, or is upgraded, is there again.
const RestartGrace = 10 * time.Second

// noticeGrace is how long it may take from the time that turns are counted from until hooks
// know that the daemon hangs, and begin to leave.
const noticeGrace = wire.SilenceMost + leaveTolerance

// LeaveAt returns the time at which a hook goes on if the daemon is gone and none
// comes in its place: its turn at the expected pace. Where that would bring the
// last of those that wait past the deadline, the time left is shared out among all
// of them instead, so that they leave one by one in their order, and never at once.
func (t Turn) LeaveAt(deadline time.Time) time.Time {
	grace := min(RestartGrace, t.left(deadline)/4)
	return t.from.Add(grace + time.Duration(t.position)*t.Step(deadline))
}

// Step is the time between two of those that leave.
func (t Turn) Step(deadline time.Time) time.Duration {
	left := t.left(deadline)
	return min(t.pace, (left-min(noticeGrace, left/2))/time.Duration(t.of+1))
}

func (t Turn) left(deadline time.Time) time.Duration { return max(0, deadline.Sub(t.from)) }

// Said is what a hook was told last; zero: nothing.
type Said struct {
	leaveAt  time.Time
	position int
}

// Changed reports whether a hook has to be told its turn anew, and takes note that it is. A hook
// without a turn is told nothing.
func (h *Said) Changed(t Turn, deadline time.Time) bool {
	at := t.LeaveAt(deadline)
	if t.position == 0 || (h.position == t.position && h.leaveAt.Sub(at).Abs() <= leaveTolerance) {
		return false
	}
	*h = Said{at, t.position}
	return true
}

// Position counts from 1; zero: the pod has no turn yet.
func (t Turn) Position() int { return t.position }

// Board holds the turns for waiters. Make it with NewBoard; it is safe for concurrent use.
type Board struct {
	mu    sync.Mutex
	turns map[string]Turn // by UID
	from  time.Time       // what they are counted from
	pace  time.Duration   // expected then
	moved chan struct{}
}

// NewBoard returns a board without a turn.
func NewBoard() *Board { return &Board{moved: make(chan struct{})} }

// Of returns the turn of a pod, its position zero where it has none yet, and a
// channel that is closed when the turns are not these any more.
func (b *Board) Of(uid string) (Turn, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.turns[uid], b.moved
}

// Post takes the turns of what the limiter holds at now, and wakes the waiters if these differ in more than
// the hooks need to know. It gives the time at which to post again though nothing
// happens: turns that were counted from long ago would all be over when the
// daemon goes away. Zero: no pod waits.
func (b *Board) Post(now time.Time, held throttle.Snapshot) (again time.Time) {
	return b.post(now, order(held), held.Pace)
}

// post is Post of these pods, at a pace.
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

// recountLocked returns the time at which the turns are counted anew: while the
// first of them is not over, all of them are yet to come.
func (b *Board) recountLocked() time.Time { return b.from.Add(max(leaveTolerance, b.pace)) }

// outdatedLocked reports whether to count the turns anew: the queue moved, or did
// not for the time in which it should have, or goes at another pace.
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
