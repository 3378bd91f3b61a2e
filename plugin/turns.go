package plugin

import (
	"sync"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// leaveTolerance is by how much a hook's time to leave may be wrong without the
// hook being told.
const leaveTolerance = time.Second

// turn is the turn of a ticket, counted from a time that all turns share.
type turn struct {
	throttle.Turn
	from time.Time
}

// restartGrace is how long the first in line waits for another daemon: the time in
// which one that crashed, or is upgraded, is there again.
const restartGrace = 10 * time.Second

// noticeGrace is how long it may take from the time that turns are counted from until hooks
// know that the daemon hangs, and begin to leave.
const noticeGrace = wire.SilenceMost + leaveTolerance

// leaveAt gives the time at which a hook goes on if the daemon is gone and none
// comes in its place: its turn at the expected pace. Where that would bring the
// last of those that wait past the deadline, the time left is shared out among all
// of them instead, so that they leave one by one in their order, and never at once.
func (t turn) leaveAt(deadline time.Time) time.Time {
	grace := min(restartGrace, t.left(deadline)/4)
	return t.from.Add(grace + time.Duration(t.Position)*t.step(deadline))
}

// step is the time between two of those that leave.
func (t turn) step(deadline time.Time) time.Duration {
	left := t.left(deadline)
	return min(t.Pace, (left-min(noticeGrace, left/2))/time.Duration(t.Of+1))
}

func (t turn) left(deadline time.Time) time.Duration { return max(0, deadline.Sub(t.from)) }

// told is what a hook was told; zero: nothing.
type told struct {
	leaveAt  time.Time
	position int
}

// differs tells whether a hook that was told this has to be told anew.
func (h told) differs(leaveAt time.Time, position int) bool {
	return h.position != position || h.leaveAt.Sub(leaveAt).Abs() > leaveTolerance
}

// turnBoard tells waiters their turns. init makes it usable.
type turnBoard struct {
	mu    sync.Mutex
	turns map[*throttle.Ticket]throttle.Turn
	from  time.Time     // what the turns are counted from
	pace  time.Duration // expected then
	moved chan struct{}
}

func (b *turnBoard) init() { b.moved = make(chan struct{}) }

// of gives the turn of a ticket, its Position zero where it has none yet, and a
// channel that is closed when the turns are not these any more.
func (b *turnBoard) of(t *throttle.Ticket) (turn, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return turn{Turn: b.turns[t], from: b.from}, b.moved
}

// post takes the turns at now, and wakes the waiters if these differ in more than
// the hooks need to know. It gives the time at which to post again though nothing
// happens: turns that were counted from long ago would all be over when the
// daemon goes away. Zero: nobody waits.
func (b *turnBoard) post(now time.Time, turns []throttle.Turn) (again time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	recount := b.outdatedLocked(now, turns)
	if recount && len(turns) > 0 {
		b.from, b.pace = now, turns[0].Pace
	}
	if recount || b.othersLocked(turns) {
		b.turns = make(map[*throttle.Ticket]throttle.Turn, len(turns))
		for _, t := range turns {
			t.Pace = b.pace
			b.turns[t.Ticket] = t
		}
		close(b.moved)
		b.moved = make(chan struct{})
	}
	if len(turns) == 0 {
		return time.Time{}
	}
	return b.recountLocked()
}

// recountLocked gives the time at which the turns are counted anew: while the
// first of them is not over, all of them are yet to come.
func (b *turnBoard) recountLocked() time.Time { return b.from.Add(max(leaveTolerance, b.pace)) }

// outdatedLocked tells whether to count the turns anew: the queue moved, or did
// not for the time in which it should have, or goes at another pace.
func (b *turnBoard) outdatedLocked(now time.Time, turns []throttle.Turn) bool {
	if len(turns) == 0 {
		return false
	}
	if len(b.turns) == 0 || !now.Before(b.recountLocked()) || (turns[0].Pace-b.pace).Abs() > b.pace/4 {
		return true
	}
	for _, t := range turns {
		if before, ok := b.turns[t.Ticket]; ok && before.Position != t.Position {
			return true
		}
	}
	return false
}

// othersLocked tells whether these are the turns of others than before.
func (b *turnBoard) othersLocked(turns []throttle.Turn) bool {
	if len(turns) != len(b.turns) {
		return true
	}
	for _, t := range turns {
		if _, ok := b.turns[t.Ticket]; !ok {
			return true
		}
	}
	return false
}
