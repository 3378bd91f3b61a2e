package throttle

import "time"

const (
	// arrivalGrace is how long a ticket that was let up counts among those near
	// their turn without having arrived there. One that takes longer pulls images,
	// and must not keep out those who could start meanwhile.
	arrivalGrace = 10 * time.Second
	// returnsWithin is the longest time after which kubelet comes back to a pod that
	// was refused.
	returnsWithin = 15 * time.Second
	// unknownRoom is the room where nobody can say how many will be admitted.
	unknownRoom = 5
	// slowdown is by how much starts may become slower at once without those near
	// their turn waiting in vain.
	slowdown = 10
)

// view is how far a limit is to look ahead, and how cautiously.
type view struct {
	waitable time.Duration // as long one can wait near its turn
	mean     time.Duration // of the last starts that ended; zero: none has
	oldest   time.Duration // the age of the oldest unfinished start
	waiting  int           // how many wait
	away     int           // of those, how many are not near their turn
	loans    int           // how many slots will be lent in foreseeLoans
}

// outlook is derived in the package documentation.
func (s *slots) outlook(_ time.Time, v view) (float64, bool) {
	free, c := float64(max(0, s.capacity()-s.starting.len())), float64(s.most)
	starts := 2*c + 1
	if v.mean > 0 {
		margin := 2.0
		if float64(v.away) > c*returnsWithin.Seconds()/v.mean.Seconds() {
			margin = slowdown
		}
		starts = free + c*v.waitable.Seconds()/(margin*v.mean.Seconds())
	}
	if v.oldest > 0 {
		starts = min(starts, free+c*v.waitable.Seconds()/(2*v.oldest.Seconds()))
	}
	return max(starts, float64(v.loans)), true
}

// roomLocked gives how many may wait near their turn where one can wait for
// waitable at most; see the package documentation for the derivation. At least 1,
// so that there is somebody for the next free slot, and no more than anybody
// could fill.
func (l *Limiter) roomLocked(now time.Time, waitable time.Duration) int {
	v := view{
		waitable: waitable, mean: l.history.mean(), oldest: l.oldestLocked(now),
		waiting: l.waiting.len(), away: l.waiting.len() - l.near.len(),
		loans: l.loansWithinLocked(now, foreseeLoans),
	}
	if l.history.n > 0 {
		v.mean = max(v.mean, 1)
	}
	room := float64(v.waiting + 1)
	for _, lim := range l.limits {
		starts, known := lim.outlook(now, v)
		if !known {
			starts = l.unknownOutlookLocked(now, v)
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

// letUpLocked decides whether t may wait near its turn: there is room, counting
// only those that go before it, so that one who comes back to an earlier place
// is not kept out by those behind; at most twice the room in all. One whose
// maxWait is over is let up in any case, if no other such is near.
func (l *Limiter) letUpLocked(now time.Time, t *Ticket, waitable time.Duration) Decision {
	l.endGraceLocked(now)
	if held, ok := l.mayPullLocked(now, t); !ok && !l.mayPassRoomLocked(now, t) {
		return Decision{Reason: held.Reason, Held: held, Ahead: l.waiting.rank(t)}
	}
	room := l.roomLocked(now, waitable)
	ahead, near := l.near.rank(t), l.near.len()
	if l.near.has(t) {
		near--
	}
	if (ahead < room && near < 2*room) || l.mayPassRoomLocked(now, t) {
		return Decision{Admitted: true, Ahead: ahead}
	}
	return Decision{
		Reason: GateRoom,
		Held:   Held{Reason: GateRoom, Measured: float64(near), Threshold: float64(room)},
		Ahead:  l.waiting.rank(t),
	}
}

// mayPassRoomLocked tells whether t is let up though there is no room or no place to
// pull: it has waited for too long, and no other such is near its turn.
func (l *Limiter) mayPassRoomLocked(now time.Time, t *Ticket) bool {
	if now.Before(t.arrived.Add(l.maxWaitLocked(t))) {
		return false
	}
	if o := l.passedRoom; o != nil && o != t && l.near.has(o) {
		return false
	}
	if o := l.longestLocked(now); o != nil && o != t {
		return false
	}
	l.passedRoom = t
	return true
}

// setLetUpLocked takes note of when the ticket was let up; the zero time: it is
// not.
func (l *Limiter) setLetUpLocked(t *Ticket, at time.Time) {
	l.grace.remove(t)
	t.letUp = at
	switch {
	case t.attended > 0:
	case at.IsZero():
		l.near.remove(t)
	default:
		l.near.insert(t)
		l.grace.insert(t)
	}
}

// letDownLocked takes back that the ticket was let up.
func (l *Limiter) letDownLocked(t *Ticket) {
	l.setLetUpLocked(t, time.Time{})
	l.pulling.remove(t)
}

// endGraceLocked takes out of those near their turn who did not arrive in time.
func (l *Limiter) endGraceLocked(now time.Time) {
	for t := l.grace.first(); t != nil && now.Sub(t.letUp) >= arrivalGrace; t = l.grace.first() {
		l.setLetUpLocked(t, time.Time{})
	}
}
