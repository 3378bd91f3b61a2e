package throttle

import (
	"math"
	"slices"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

const (
	// unknownStart is the duration of a start that is assumed while none was observed.
	unknownStart = 15 * time.Second
	// slowdown is by how much starts may become slower without those near their turn waiting
	// in vain: tenfold, and the rest of a start.
	slowdown = 12
	// fewSeconds is how much work has to be left for a slowdown to be cared for: with less, it
	// matters more that everybody is there in time.
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
	var sorted [len(d.last)]time.Duration
	for i := range n {
		sorted[i] = d.last[(d.n-1-i)%len(d.last)]
	}
	slices.Sort(sorted[:n])
	return max(time.Millisecond, (sorted[(n-1)/2]+sorted[n/2])/2), true
}

// endRate gives how many starts end in a second with so many slots. Of those that are there now
// (have), one that is held since a time ends its start in the duration of a start, or in ages
// times as long as it has taken so far, if that is more; a free one ends it in the duration of
// a start. Slots beyond these count as their mean.
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

// forecast is what is expected of the starts of the node, for a time.
type forecast struct {
	now      time.Time
	waitable time.Duration // as long a process can wait near its turn
	start    time.Duration // the median of those that ended
	known    bool          // any did
	coming   int           // so many could start that have a waiter, or will within seconds
}

func (d *admission) forecast(now time.Time, waitable time.Duration) forecast {
	f := forecast{now: now, waitable: waitable}
	f.start, f.known = d.slots.took.median(len(d.slots.took.last))
	lately, _ := d.slots.took.median(lastFew)
	f.start = max(f.start, lately)
	f.coming = d.queue.couldStart(func(t *Ticket) bool { return t.expected(now) })
	return f
}

// starts gives how many can begin in the time: so many at once as are free, then as starts end,
// with the slots as in endRate. The package documentation derives it.
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

// room gives how many may wait near their turn: as many as each limit of the node will admit in
// time, but one at least, for the next free slot.
func (d *admission) room(now time.Time, f *forecast) int {
	room := float64(len(d.queue.arrivals) + 1)
	half := f.waitable.Seconds() / 2
	if d.slots.limit != noLimit {
		since := d.slots.heldSince()
		free := max(0, d.slots.capacity()-len(since))
		room = min(room, max(f.starts(free, since, d.slots.limit, d.slots.limitSoon), float64(d.slots.soonLent())))
	}
	if d.settings.FillEvery > 0 {
		room = min(room, d.limits.bucket.TokensAt(now)+half/d.settings.FillEvery.Seconds())
	}
	if d.limits.boundsSignals() {
		starts := float64(unknownRoom)
		if every, known := d.admissionsEvery(now); known {
			starts = max(starts, half/max(every, 1).Seconds())
		}
		room = min(room, starts)
	}
	return max(1, int(room))
}

// foresee has the bounds on the starts of a group allow what they are expected to let start in
// time. One start uses of each what those under way do on average.
func (f *forecast) foresee(g *group) {
	for i := range g.bounds {
		b := &g.bounds[i]
		if b.reason == reasons.PolicyRunning || b.most == anyNumber {
			continue
		}
		unit, starting := 1.0, float64(len(g.since))
		if b.resource != "" {
			unit = max(1, b.used/max(1, starting))
		}
		free := math.Floor(max(0, b.most-b.used) / unit)
		slots := int(min(b.most/unit, starting+free))
		b.allows = b.used + unit*math.Floor(f.starts(int(free), g.since, slots, slots))
	}
}

// foreseeOne has the bounds on starts of the pod's groups allow one such as it beside those
// that start, and any number where they have no claims.
func (p *pod) foreseeOne() {
	for i := range p.asks {
		switch a := &p.asks[i]; {
		case a.bound.reason == reasons.PolicyRunning:
		case a.bound.reason == reasons.PolicyClaim && a.bound.most == 0:
			a.bound.allows = anyNumber
		default:
			a.bound.allows = max(a.bound.allows, a.bound.used+a.amount)
		}
	}
}

// pace gives the expected time between two admissions, that of the slowest limit;
// zero: none is set. Of a limit on a signal, it is that of the latest admissions. Not
// observed, it is a guess.
func (d *admission) pace(now time.Time) (every time.Duration, observed bool) {
	observed = true
	slower := func(than time.Duration, known bool) {
		every, observed = max(every, than), observed && known
	}
	if d.slots.limit != noLimit {
		start, known := d.slots.took.median(len(d.slots.took.last))
		ends := endRate(now, d.slots.heldSince(), d.slots.limit, d.slots.limit, start, 1)
		slower(time.Duration(math.Round(float64(time.Second)/ends)), known)
	}
	slower(d.settings.FillEvery, true)
	if d.limits.boundsSignals() {
		slower(d.admissionsEvery(now))
	}
	return every, observed
}

// admissionsEvery gives the mean time between the admissions of the last minute, as
// far as the longest wait reaches back; false: there were none.
func (d *admission) admissionsEvery(now time.Time) (time.Duration, bool) {
	since := now
	for _, t := range d.queue.arrivals {
		since = earlier(since, t.arrived)
	}
	since = later(since, now.Add(-paceOver))
	n := d.limits.admissions.after(since)
	if n == 0 {
		return unknownStart, false
	}
	return now.Sub(since) / time.Duration(n), true
}

// sample gives what the adaptive limit is fed with: no starts that are exempt, with a slot or
// without.
func (d *admission) sample(now time.Time) adaptive.Sample {
	signals := &d.limits.signals
	s := adaptive.Sample{At: now, Queued: len(d.queue.arrivals), Made: d.slots.took.n, Lost: d.slots.lost}
	for _, t := range d.slots.inFlight {
		s.Starting += one(t.slot && t.admission != reasons.Exempt)
	}
	if d.limits.held(now).none() {
		s.Waiting = d.queue.couldStart((*Ticket).waits)
	}
	s.CPU, s.CPUKnown = signals.valueAt(now, SignalCPU)
	s.CPUPressure, s.CPUPressureKnown = signals.valueAt(now, SignalCPUPressure)
	s.IOPressure, s.IOPressureKnown = signals.valueAt(now, SignalIOPressure)
	for _, signal := range [...]Signal{SignalIOPressure, SignalCPUPressure, SignalCPU} {
		if _, known := signals.valueAt(now, signal); known {
			r := signals[signal]
			s.At, s.Window = r.To, r.To.Sub(r.From)
		}
	}
	return s
}
