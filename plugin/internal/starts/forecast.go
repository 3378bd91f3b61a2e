package starts

import (
	"slices"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// leaveTolerance is by how much a hook's time to leave may change before the hook is informed.
const leaveTolerance = time.Second

// RestartGrace is how long the first in the queue waits for another daemon. A daemon that crashed or is upgraded is
// back in that time.
const RestartGrace = 10 * time.Second

// leastPace is the pace where no limit of the node gives one, because only policies hold pods.
const leastPace = time.Second

// noticeGrace is how long it may take from a forecast until hooks notice that the daemon hangs, and begin
// to leave.
const noticeGrace = wire.SilenceMost + leaveTolerance

// Forecast is when a pod that waits with a process is expected to start, at the expected pace. It also says when the
// process leaves if the daemon is gone, so that pods start one by one, in the order of the queue, and never all at once. The
// zero value: there is no forecast yet.
type Forecast struct {
	// LeaveAt is when the process leaves if the daemon is gone and no other takes its place: RestartGrace after its turn
	// at the expected pace. If the last turn were after the deadline, all processes share the time that is left instead.
	LeaveAt time.Time
	// Place is the pod's place among the pods that wait with a process, from 1.
	Place int
	// Pace is the time between two processes that leave.
	Pace time.Duration
}

// Supersedes reports whether a process that was sent the forecast last has to be sent this one. The zero value is sent
// to no process.
func (f Forecast) Supersedes(last Forecast) bool {
	return f.Place != 0 && (f.Place != last.Place || f.LeaveAt.Sub(last.LeaveAt).Abs() > leaveTolerance)
}

// board has the order and the pace of the pods that wait with a process. The lock of the Starts guards it.
type board struct {
	uids   []string      // in the order of the queue
	from   time.Time     // when their turns were forecast, or the end of the Pause before which there are none
	paused bool          // there was a Pause
	pace   time.Duration // expected at that time
	moved  chan struct{} // closed when the forecasts change
}

// forecast returns the forecast for a pod whose process can wait until the deadline.
func (b *board) forecast(uid string, deadline time.Time) Forecast {
	place := slices.Index(b.uids, uid) + 1
	if place == 0 {
		return Forecast{}
	}
	began := b.from
	if b.paused && began.After(deadline) && !deadline.IsZero() {
		began = deadline
	}
	left := max(0, deadline.Sub(began))
	pace := min(b.pace, (left-min(noticeGrace, left/2))/time.Duration(len(b.uids)+1))
	grace := min(RestartGrace, left/4)
	return Forecast{began.Add(grace + time.Duration(place)*pace), place, pace}
}

// update forecasts the turns from a snapshot of the limiter if pods have left the list or changed their order, if the
// pace has changed by more than a quarter, or if the first turn is over. Pods that come at the end of the list get
// their turns after those that were forecast before, because each new forecast moves the turns of all. Then update
// wakes the waiters. It returns when to call it again, even if nothing happens: old turns would all be over when the
// daemon goes away. It returns zero if no pod waits.
func (b *board) update(now time.Time, s throttle.Snapshot) (again time.Time) {
	uids := withProcess(s)
	if s.Interval <= 0 {
		s.Interval = leastPace
	}
	from, paused := now, s.Held.Reason == reasons.StartAfter
	if paused {
		from = s.Held.Until
	}
	firstTurn := b.from.Add(max(leaveTolerance, b.pace))
	moved := len(b.uids) == 0 || len(uids) < len(b.uids) || !slices.Equal(uids[:len(b.uids)], b.uids)
	outdated := len(uids) > 0 && (moved || paused != b.paused || !now.Before(firstTurn) || (s.Interval-b.pace).Abs() > b.pace/4)
	if outdated {
		b.from, b.paused, b.pace = from, paused, s.Interval
	}
	if outdated || len(uids) != len(b.uids) {
		b.uids = uids
		close(b.moved)
		b.moved = make(chan struct{})
	}
	if len(uids) == 0 {
		return time.Time{}
	}
	return b.from.Add(max(leaveTolerance, b.pace))
}

// withProcess returns the pods that wait with a process, in the order of the queue. Pods that a policy holds come last.
func withProcess(s throttle.Snapshot) (uids []string) {
	for _, held := range []bool{false, true} {
		for _, v := range s.Waiting {
			if v.Present && (v.Held.Policy != throttle.GroupKey{}) == held {
				uids = append(uids, v.UID)
			}
		}
	}
	return uids
}
