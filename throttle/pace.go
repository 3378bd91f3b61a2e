package throttle

import "time"

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

// mean gives the mean; zero: there is none.
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

// oldestLocked gives the age of the oldest unfinished start.
func (l *Limiter) oldestLocked(now time.Time) time.Duration {
	if t := l.starting.first(); t != nil {
		return max(0, now.Sub(t.admitted))
	}
	return 0
}

// pace is the expected time between two admissions, and what that rests on.
type pace struct {
	every time.Duration
	basis Basis
}

// paceLocked gives the expected pace: that of the slowest limit. Of a limit that
// cannot say, it is that of the admissions since somebody waits.
func (l *Limiter) paceLocked(now time.Time) pace {
	p := pace{basis: BasisObserved}
	d := max(l.history.mean(), l.oldestLocked(now))
	if l.history.n == 0 {
		d = max(d, unknownStart)
	}
	for _, lim := range l.limits {
		every, known := lim.interval(d)
		if !known {
			every, known = l.admissionsEveryLocked(now)
		} else if lim == limit(&l.slots) {
			known = l.history.n > 0
		}
		if !known {
			p.basis = BasisNone
		}
		p.every = max(p.every, every)
	}
	return p
}

// admissionsEveryLocked gives the mean time between the admissions of the last
// minute, as far as somebody waited all the time; false: there were none.
func (l *Limiter) admissionsEveryLocked(now time.Time) (time.Duration, bool) {
	from := later(l.crowded, now.Add(-takesKept))
	n := l.paced.after(from)
	if n == 0 {
		return unknownStart, false
	}
	return now.Sub(from) / time.Duration(n), true
}

// expected gives the time until a ticket is admitted, with so many waiting before it, if
// the pace stays. Beside an open limit that is at once.
func (p pace) expected(ahead int, open bool) time.Duration {
	if open {
		return time.Duration(ahead) * p.every
	}
	return time.Duration(ahead+1) * p.every
}
