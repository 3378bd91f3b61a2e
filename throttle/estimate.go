package throttle

import (
	"math"
	"slices"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

const (
	// unknownStart is the duration of a start that is assumed while none was observed.
	unknownStart = 15 * time.Second
	// slowdown is by how much starts may become slower at once without those that wait near
	// their turn waiting in vain: tenfold, and the rest of a start.
	slowdown = 12
	// fewSeconds is how much work has to be left for a slowdown to be cared for. With less,
	// it matters more that everybody is there in time.
	fewSeconds = 25
	// lastFew is of how many starts the room looks at the durations apart: those that become
	// slower show there first.
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
	var sorted [len(d.last)]time.Duration
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
		f.start = max(f.start, lately)
	}
	f.coming = l.couldStartLocked(func(t *Ticket) bool { return t.expected(now) })
	return f
}

// starts gives how many will start where so many may now, and slots at a time, of which
// there are have now and some are held since. See the package documentation.
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

// roomLocked gives how many may wait near their turn: as many as each limit of the node
// will admit in time. At least 1, so that there is one for the next free slot, and no more
// than anybody could fill.
func (l *Limiter) roomLocked(now time.Time, f *forecast) int {
	room := float64(len(l.queue.arrivals) + 1)
	half := f.waitable.Seconds() / 2
	if l.limit > 0 {
		since := l.sinceLocked()
		free := max(0, l.capacityLocked()-len(since))
		room = min(room, max(f.starts(free, since, l.limit, l.limitSoon), float64(l.soonLentLocked())))
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
	return slices.ContainsFunc(l.settings.Signals[:], func(s SignalLimit) bool { return s.Max > 0 })
}

// foresee has the bounds on the starts of a group allow what they are expected to let start
// while a process can wait near its turn. One start uses of each what those under way do on
// average.
func (f *forecast) foresee(g *group) {
	for i := range g.bounds {
		b := &g.bounds[i]
		if b.reason == reasons.PolicyRunning || b.most == anyNumber {
			continue
		}
		unit := int64(1)
		if b.resource != "" {
			unit = max(1, b.used/int64(max(1, g.starting)))
		}
		free := max(0, b.most-b.used) / unit
		slots := int(min(b.most/unit, int64(g.starting)+free))
		starts := f.starts(int(free), g.since, slots, slots)
		b.allows = b.used + int64(min(math.Floor(starts)*float64(unit), mostTogether))
	}
}

// paceLocked gives the expected time between two admissions, that of the slowest limit;
// zero: none is set. Of a limit on a signal, it is that of the latest admissions. Not
// observed, it is a guess.
func (l *Limiter) paceLocked(now time.Time) (every time.Duration, observed bool) {
	observed = true
	slower := func(than time.Duration, known bool) {
		every, observed = max(every, than), observed && known
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
	return every, observed
}

// admissionsEveryLocked gives the mean time between the admissions of the last minute, as
// far as the longest wait reaches back; false: there were none.
func (l *Limiter) admissionsEveryLocked(now time.Time) (time.Duration, bool) {
	since := now
	for _, t := range l.queue.arrivals {
		since = earlier(since, t.arrived)
	}
	since = later(since, now.Add(-paceOver))
	n := l.admissions.after(since)
	if n == 0 {
		return unknownStart, false
	}
	return now.Sub(since) / time.Duration(n), true
}
