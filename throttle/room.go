package throttle

import "time"

// arrivalGrace is how long a ticket that was let up counts among those near
// their turn without having arrived there. One that takes longer pulls images,
// and must not keep out those who could start meanwhile.
const arrivalGrace = 10 * time.Second

// unknownStart is the duration of a start that is assumed for the pace while
// nothing was observed.
const unknownStart = 15 * time.Second

// history is the duration of the last starts that ended.
type history struct {
	took [16]time.Duration
	n    int
}

func (h *history) add(d time.Duration) {
	h.took[h.n%len(h.took)] = d
	h.n++
}

func (h *history) mean() time.Duration {
	n := min(h.n, len(h.took))
	if n == 0 {
		return 0
	}
	var sum time.Duration
	for _, d := range h.took[:n] {
		sum += d
	}
	return sum / time.Duration(n)
}

// durationLocked gives a pessimistic duration of a start: the greater of the mean
// of the last ends and the age of the oldest unfinished start. ok is false while
// no start ended yet.
func (l *Limiter) durationLocked(now time.Time) (d time.Duration, ok bool) {
	d = l.history.mean()
	for _, t := range l.starting.tickets {
		d = max(d, now.Sub(t.admitted))
	}
	return d, l.history.n > 0
}

// paceLocked gives the expected time between two admissions.
func (l *Limiter) paceLocked(now time.Time) time.Duration {
	d, ok := l.durationLocked(now)
	if !ok {
		d = max(d, unknownStart)
	}
	var pace time.Duration
	for _, lim := range l.limits {
		pace = max(pace, lim.interval(d))
	}
	return pace
}

// roomLocked gives how many may wait near their turn where one can wait for
// waitable at most; see the package documentation for the derivation. At least 1,
// so that there is somebody for the next free slot, and no more than anybody
// could fill.
func (l *Limiter) roomLocked(now time.Time, waitable time.Duration) int {
	d, observed := l.durationLocked(now)
	if observed {
		d = max(d, 1)
	} else {
		d = 0
	}
	room := float64(l.waiting.len() + 1)
	for _, lim := range l.limits {
		room = min(room, lim.outlook(now, l.starting.len(), d, waitable/2))
	}
	return max(1, int(room))
}

// letUpLocked decides whether t may wait near its turn: there is room, counting
// only those that go before it, so that one who comes back to an earlier place
// is not kept out by those behind; at most twice the room in all.
func (l *Limiter) letUpLocked(now time.Time, t *Ticket, waitable time.Duration) Decision {
	room := l.roomLocked(now, waitable)
	ahead, near := 0, 0
	for _, o := range l.waiting.tickets {
		if o == t || !o.nearLocked(now) {
			continue
		}
		near++
		if before(o, t) < 0 {
			ahead++
		}
	}
	if ahead < room && near < 2*room {
		return Decision{Admitted: true, Ahead: ahead}
	}
	return Decision{
		Reason: GateRoom,
		Held:   Held{Reason: GateRoom, Measured: float64(near), Threshold: float64(room)},
		Ahead:  l.waiting.rank(t),
	}
}

// nearLocked tells whether the ticket waits near its turn, or is about to.
func (t *Ticket) nearLocked(now time.Time) bool {
	return t.attended > 0 || (!t.letUp.IsZero() && now.Sub(t.letUp) < arrivalGrace)
}
