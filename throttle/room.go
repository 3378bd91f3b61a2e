package throttle

import "time"

const (
	// arrivalGrace is how long a ticket that was let up counts among those that come
	// without having arrived. One that takes longer pulls images, and must not keep
	// out those who could start meanwhile.
	arrivalGrace = 10 * time.Second
	// returnsWithin is how long a ticket that was refused counts among those that
	// come: kubelet is back within 15 seconds, and then has something to do.
	returnsWithin = 20 * time.Second
	// slowdown is by how much starts may become slower at once without those in
	// the gate waiting in vain: tenfold, and the rest of a start.
	slowdown = 12
	// fewSeconds is how much work has to be left for a slowdown to be cared for.
	// With less, it matters more that everybody is there in time.
	fewSeconds = 25
	// unknownRoom is the room where nobody can say how many will be admitted.
	unknownRoom = 5
)

// view is how far a limit is to look ahead, and what it knows.
type view struct {
	waitable time.Duration // as long one can wait near its turn
	mean     time.Duration // of the last starts that ended; zero: none has
	oldest   time.Duration // the age of the oldest unfinished start
	coming   int           // how many stand there, or will within seconds
	loans    int           // how many slots will be lent in foreseeLoans
}

// outlook is derived in the package documentation.
func (s *slots) outlook(_ time.Time, v view) (float64, bool) {
	free := max(0, s.capacity()-s.starting.len())
	return max(v.starts(float64(free), float64(max(s.most, s.reach)), s.most), float64(v.loans)), true
}

// starts gives how many will start where so many may now, c may at a time, and each
// of most has its work.
func (v *view) starts(free, c float64, most int) float64 {
	// in gives how many start in the time that one can wait, if each takes so long.
	waitable := v.waitable.Seconds()
	in := func(start time.Duration) float64 { return free + c*waitable/start.Seconds() }
	starts := 2*c + 1
	if v.mean > 0 {
		starts = in(2 * v.mean)
		if float64(v.coming) > float64(most)*fewSeconds/v.mean.Seconds() {
			starts = min(starts, max(in(slowdown*v.mean), free+c))
		}
	}
	if v.oldest > 0 {
		starts = min(starts, in(2*v.oldest))
	}
	return starts
}

// lookAheadLocked gives what is known of the starts of the node.
func (l *Limiter) lookAheadLocked(now time.Time, waitable time.Duration) view {
	v := view{
		waitable: waitable, mean: l.history.mean(), oldest: l.oldestLocked(now),
		coming: l.comingLocked(),
		loans:  l.loansWithinLocked(now, foreseeLoans),
	}
	if l.history.n > 0 {
		v.mean = max(v.mean, 1)
	}
	return v
}

// roomLocked gives how many may wait near their turn; see the package documentation
// for the derivation. At least 1, so that there is somebody for the next free slot,
// and no more than anybody could fill.
func (l *Limiter) roomLocked(now time.Time, v *view) int {
	room := float64(l.waitingLocked() + 1)
	for _, lim := range l.limits {
		starts, known := lim.outlook(now, *v)
		if !known {
			starts = l.unknownOutlookLocked(now, *v)
		}
		room = min(room, starts)
	}
	return max(1, int(room))
}

// unknownOutlookLocked gives how many a limit admits that cannot say it: as many
// as lately, in half the time.
func (l *Limiter) unknownOutlookLocked(now time.Time, v view) float64 {
	every, known := l.admissionsEveryLocked(now)
	if !known {
		return unknownRoom
	}
	return max(unknownRoom, v.waitable.Seconds()/2/max(every, 1).Seconds())
}

// letUpLocked decides whether t may wait near its turn: there is room for all that
// come before it, of whom some may be away for a moment, and for it; and no more
// than twice the room are near. One whose maxWait is over is let up in any case, if
// no other such is near. One that a bound of Running holds is not: nobody knows for
// how long.
func (l *Limiter) letUpLocked(now time.Time, t *Ticket, waitable time.Duration) Decision {
	l.endGraceLocked(now)
	if t.class.runs {
		if held, full := l.reservedLocked(t); full {
			return Decision{Reason: held.Reason, Held: held, Ahead: l.aheadLocked(t)}
		}
	}
	if l.settings.MaxPulling > 0 {
		if held, ok := l.mayPullLocked(now, t); !ok && !l.mayPassRoomLocked(now, t) {
			return Decision{Reason: held.Reason, Held: held, Ahead: l.aheadLocked(t)}
		}
	}
	v := l.lookAheadLocked(now, waitable)
	if !t.class.free() {
		if held, ok := t.classRoom(v); !ok && !l.mayPassRoomLocked(now, t) {
			return Decision{Reason: held.Reason, Held: held, Ahead: l.aheadLocked(t)}
		}
	}
	room := l.roomLocked(now, &v)
	ahead, near := l.comeBeforeLocked(t, &v)
	if (ahead < room && near < 2*room) || l.mayPassRoomLocked(now, t) {
		return Decision{Admitted: true, Ahead: ahead}
	}
	return Decision{Reason: GateRoom, Held: noRoom(max(ahead, near), room), Ahead: l.aheadLocked(t)}
}

func noRoom(before, room int) Held {
	return Held{Reason: GateRoom, Measured: float64(before), Threshold: float64(room)}
}

// mayPassRoomLocked tells whether t is let up though there is no room or no place to
// pull: it has waited for too long, and no other such is near its turn.
func (l *Limiter) mayPassRoomLocked(now time.Time, t *Ticket) bool {
	if now.Before(t.arrived.Add(l.maxWaitLocked(t))) {
		return false
	}
	if o := l.passedRoom; o != nil && o != t && o.class.near.has(o) {
		return false
	}
	if o := l.longestLocked(now); o != nil && o != t {
		return false
	}
	l.passedRoom = t
	return true
}

// comesLocked says that somebody will stand there for the ticket by a time: it was
// let up, or refused. The zero time: nobody knows of any.
func (l *Limiter) comesLocked(t *Ticket, letUp bool, by time.Time) {
	l.grace.remove(t)
	t.letUp, t.comes = letUp, by
	if t.attended > 0 {
		return
	}
	if letUp {
		t.class.near.insert(t)
	} else {
		t.class.near.remove(t)
	}
	if by.IsZero() {
		t.class.coming.remove(t)
		return
	}
	t.class.coming.insert(t)
	l.grace.insert(t)
}

// letDownLocked takes back that the ticket was let up.
func (l *Limiter) letDownLocked(t *Ticket) {
	if t.letUp {
		l.comesLocked(t, false, time.Time{})
	}
	l.pulling.remove(t)
}

// endGraceLocked takes out of those that come who did not in time.
func (l *Limiter) endGraceLocked(now time.Time) {
	for t := l.grace.first(); t != nil && !now.Before(t.comes); t = l.grace.first() {
		l.comesLocked(t, false, time.Time{})
	}
}
