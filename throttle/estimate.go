package throttle

import (
	"math"
	"slices"
	"time"
)

const (
	// unknownStart is the duration of a start that is assumed while none was observed.
	unknownStart = 15 * time.Second
	// arrivalGrace is how long a pod with a reservation is expected. One that takes longer
	// pulls images, and must not keep out those that could start meanwhile.
	arrivalGrace = 10 * time.Second
	// returnsWithin is how long a pod that was refused is expected: kubelet is back within
	// 15 seconds, and then has something to do.
	returnsWithin = 20 * time.Second
	// slowdown is by how much starts may become slower at once without those that wait near
	// their turn waiting in vain: tenfold, and the rest of a start.
	slowdown = 12
	// fewSeconds is how much work has to be left for a slowdown to be cared for. With less,
	// it matters more that everybody is there in time.
	fewSeconds = 25
	// lastFew is of how many starts the room looks at the durations apart.
	lastFew = 2
	// unknownRoom is the room where nobody can say how many will be admitted.
	unknownRoom = 5
)

// durations are those of the latest starts that ended as started.
type durations struct {
	last [16]time.Duration
	n    int
}

func (d *durations) add(took time.Duration) {
	d.last[d.n%len(d.last)] = took
	d.n++
}

// median gives the median of the last so many, at least a millisecond; false: there is
// none.
func (d *durations) median(of int) (time.Duration, bool) {
	n := min(d.n, of)
	if n == 0 {
		return unknownStart, false
	}
	var sorted [16]time.Duration
	for i := range n {
		sorted[i] = d.last[(d.n-1-i)%len(d.last)]
	}
	slices.Sort(sorted[:n])
	return max(time.Millisecond, (sorted[(n-1)/2]+sorted[n/2])/2), true
}

// endRate gives how many starts end in a second: of those that hold slots since some times,
// each in the duration of a start, or, where it has taken longer, in as long as it has;
// ages: that counts so many times. Of so many slots, those that are free count as fast, and
// those that there are not yet, beyond have, like the others.
func endRate(now time.Time, since []time.Time, have, slots int, start time.Duration, ages float64) (rate float64) {
	for _, at := range since {
		rate += 1 / max(start.Seconds(), ages*now.Sub(at).Seconds())
	}
	taken := len(since)
	if free := have - taken; free > 0 {
		rate, taken = rate+float64(free)/start.Seconds(), have
	}
	return rate * float64(slots) / float64(max(1, taken))
}

// sinceLocked gives since when slots are held.
func (l *Limiter) sinceLocked() []time.Time {
	l.since = l.since[:0]
	for _, t := range l.inFlight {
		if t.slot {
			l.since = append(l.since, t.admitted)
		}
	}
	return l.since
}

// forecast is what is expected of the starts of the node, for a time.
type forecast struct {
	now      time.Time
	waitable time.Duration // as long a process can wait near its turn
	start    time.Duration // the median of those that ended
	known    bool          // any did
	coming   int           // how many wait, or will within seconds
}

func (l *Limiter) forecastLocked(now time.Time, waitable time.Duration) forecast {
	f := forecast{now: now, waitable: waitable}
	f.start, f.known = l.took.median(len(l.took.last))
	if lately, _ := l.took.median(lastFew); f.known {
		f.start = max(f.start, lately) // starts that become slower show here first
	}
	s := l.scanLocked()
	for _, t := range l.queue.arrivals {
		if !t.expected(now) {
			continue
		}
		if h := s.holds(t); h.in == nil {
			s.take(t)
			f.coming++
		}
	}
	return f
}

// starts gives how many will start where so many may now, and slots at a time, of which
// there are have now and some are held since.
func (f *forecast) starts(free int, since []time.Time, have, slots int) float64 {
	if !f.known {
		aged := endRate(f.now, since, have, slots, time.Millisecond, 2)
		return min(float64(2*slots+1), float64(free)+f.waitable.Seconds()*aged)
	}
	starts := float64(free) + f.waitable.Seconds()*endRate(f.now, since, have, slots, f.start, 1)/2
	if float64(f.coming) > float64(have)*fewSeconds/f.start.Seconds() {
		slowed := endRate(f.now, since, have, have, slowdown*f.start, 2)
		starts = min(starts, max(float64(free)+f.waitable.Seconds()*slowed, float64(free+slots)))
	}
	return starts
}

// slotRoomLocked gives how many starts the number of starts at a time lets begin while a
// process can wait near its turn.
func (l *Limiter) slotRoomLocked(now time.Time, f *forecast) float64 {
	since := l.sinceLocked()
	free := max(0, l.capacityLocked()-len(since))
	return max(f.starts(free, since, l.limit, max(l.limit, l.limitSoon)), float64(l.loansWithinLocked(now, foreseeLoans)))
}

// roomLocked gives how many may wait near their turn; see the package documentation for
// the derivation. At least 1, so that there is one for the next free slot, and no more
// than anybody could fill.
func (l *Limiter) roomLocked(now time.Time, f *forecast) int {
	room := float64(len(l.queue.arrivals) + 1)
	half := f.waitable.Seconds() / 2
	if l.limit > 0 {
		room = min(room, l.slotRoomLocked(now, f))
	}
	if l.settings.FillEvery > 0 {
		room = min(room, l.bucket.TokensAt(now)+half/l.settings.FillEvery.Seconds())
	}
	if l.bySignalLocked() {
		starts := float64(unknownRoom)
		if every, known := l.admissionsEveryLocked(now); known {
			starts = max(starts, half/max(every, 1).Seconds())
		}
		room = min(room, starts)
	}
	return max(1, int(room))
}

// bySignalLocked tells whether a limit on a signal is set: how many starts that lets
// begin, nobody knows beforehand.
func (l *Limiter) bySignalLocked() bool {
	for signal := range numSignals {
		if l.settings.Threshold(signal) > 0 {
			return true
		}
	}
	return false
}

// pace is the expected time between two admissions, and what that rests on.
type pace struct {
	every time.Duration
	basis Basis
}

// paceLocked gives the pace of the slowest limit. Of a limit on a signal, it is that of
// the admissions since pods wait.
func (l *Limiter) paceLocked(now time.Time) pace {
	p := pace{basis: BasisObserved}
	slower := func(every time.Duration, known bool) {
		p.every = max(p.every, every)
		if !known {
			p.basis = BasisNone
		}
	}
	if l.limit > 0 {
		start, known := l.took.median(len(l.took.last))
		ends := endRate(now, l.sinceLocked(), l.limit, l.limit, start, 1)
		slower(time.Duration(math.Round(float64(time.Second)/ends)), known)
	}
	if l.settings.FillEvery > 0 {
		slower(l.settings.FillEvery, true)
	}
	if l.bySignalLocked() {
		slower(l.admissionsEveryLocked(now))
	}
	return p
}

// admissionsEveryLocked gives the mean time between the admissions of the last minute, as
// far as pods waited all the time; false: there were none.
func (l *Limiter) admissionsEveryLocked(now time.Time) (time.Duration, bool) {
	from := later(l.crowded, now.Add(-pacedOver))
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
