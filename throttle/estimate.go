package throttle

import (
	"math"
	"slices"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

const (
	// unknownStart is the duration of a start that is assumed until one was observed.
	unknownStart = 15 * time.Second
	// slowdown is by how much starts may become slower while all pods near their turn still get it
	// in time: tenfold, and two for the starts under way.
	slowdown = 12
	// slowdownAbove is how many seconds of work must be left before the quota allows for a
	// slowdown. With less work, a slot that stays empty costs more.
	slowdownAbove = 25
	// lastFew is how many of the latest starts have a median of their own in the quota.
	lastFew = 2
	// unknownQuota is the quota if the number of admissions cannot be estimated.
	unknownQuota = 5
)

// durations holds how long the latest starts took that ended as started.
type durations struct {
	last [16]time.Duration
	n    int
}

func (d *durations) add(took time.Duration) {
	d.last[d.n%len(d.last)] = took
	d.n++
}

// median returns the median of the latest durations, at most as many as given. It is at least a
// millisecond. Without a duration, it returns unknownStart and false.
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

// endRate returns how many starts end per second in a number of slots. have is how many slots there
// are now; those that are taken were taken at the times in since. The rate of a free slot is one per
// start, the duration. That of a taken slot is one per start, or per ages times the age of its start
// if that is longer. Slots beyond have count as the mean of the others.
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

// forecast is an estimate of the starts on the node within the next time, waitable.
type forecast struct {
	now      time.Time
	waitable time.Duration // how long a process can wait near its turn
	start    time.Duration // how long a start takes
	known    bool          // start was observed
	steady   bool          // starts are not taken to become slower
	awaited  int           // how many tickets that have a waiter or are awaited could start
}

func (d *admission) forecast(now time.Time, waitable time.Duration) forecast {
	f := forecast{now: now, waitable: waitable}
	f.start, f.known = d.slots.took.median(len(d.slots.took.last))
	lately, _ := d.slots.took.median(lastFew)
	f.start = max(f.start, lately)
	f.awaited = d.queue.couldStart(func(t *Ticket) bool { return t.awaited(now) })
	return f
}

// starts returns how many starts can begin within f.waitable: at once as many as there are free
// slots, and then one for each start that ends. since, have and slots are as in endRate. The package
// documentation derives the formula.
func (f *forecast) starts(free int, since []time.Time, have, slots int) float64 {
	if !f.known {
		aged := endRate(f.now, since, have, slots, time.Millisecond, 2)
		return min(float64(2*slots+1), float64(free)+f.waitable.Seconds()*aged)
	}
	starts := float64(free) + f.waitable.Seconds()*endRate(f.now, since, have, slots, f.start, 1)/2
	if !f.steady && float64(f.awaited) > float64(have)*slowdownAbove/f.start.Seconds() {
		slowed := endRate(f.now, since, have, have, slowdown*f.start, 2)
		starts = min(starts, max(float64(free)+f.waitable.Seconds()*slowed, float64(free+slots)))
	}
	return starts
}

// quota returns how many pods may wait near their turn: as many as each limit of the node is expected
// to admit in time, and at least one, for the next free slot.
func (d *admission) quota(now time.Time, f *forecast) int {
	quota := float64(len(d.queue.arrivals) + 1)
	half := f.waitable.Seconds() / 2
	if d.slots.limit != noLimit {
		since := d.slots.admittedAt()
		free := max(0, d.slots.capacity()-len(since))
		quota = min(quota, max(f.starts(free, since, d.slots.limit, d.slots.limitSoon), float64(d.slots.lentSoon())))
	}
	if d.settings.FillEvery > 0 {
		quota = min(quota, d.limits.bucket.TokensAt(now)+half/d.settings.FillEvery.Seconds())
	}
	if d.limits.boundsSignals() {
		starts := float64(unknownQuota)
		if every, known := d.admissionsEvery(now); known {
			starts = max(starts, half/max(every, 1).Seconds())
		}
		quota = min(quota, starts)
	}
	return max(1, int(quota))
}

// allowForecast makes the bounds on the starts of a group allow what is expected to start within
// f.waitable. Of a resource, each start counts as the mean of the starts under way.
func (f *forecast) allowForecast(g *group) {
	for i := range g.bounds {
		b := &g.bounds[i]
		if b.reason == reasons.PolicyRunning || b.limit == anyNumber {
			continue
		}
		unit, starting := 1.0, float64(len(g.admittedAt))
		if b.resource != "" {
			unit = max(1, b.used/max(1, starting))
		}
		free := math.Floor(max(0, b.limit-b.used) / unit)
		slots := int(min(b.limit/unit, starting+free))
		b.allows = b.used + unit*math.Floor(f.starts(int(free), g.admittedAt, slots, slots))
	}
}

// allowOneMore makes the bounds on starts of the pod's groups allow this pod beside the starts under
// way. Groups that have no claims allow any number.
func (p *pod) allowOneMore() {
	for i := range p.asks {
		switch a := &p.asks[i]; {
		case a.bound.reason == reasons.PolicyRunning:
		case a.bound.reason == reasons.PolicyClaim && a.bound.limit == 0:
			a.bound.allows = anyNumber
		default:
			a.bound.allows = max(a.bound.allows, a.bound.used+a.amount)
		}
	}
}

// interval returns the expected time between two admissions by the slowest limit; zero if no limit is
// set. For a limit on a signal, that is the mean time between the latest admissions. It is a guess
// if observed is false.
func (d *admission) interval(now time.Time) (every time.Duration, observed bool) {
	observed = true
	slower := func(than time.Duration, known bool) {
		every, observed = max(every, than), observed && known
	}
	if d.slots.limit != noLimit {
		start, known := d.slots.took.median(len(d.slots.took.last))
		ends := endRate(now, d.slots.admittedAt(), d.slots.limit, d.slots.limit, start, 1)
		slower(time.Duration(math.Round(float64(time.Second)/ends)), known)
	}
	slower(d.settings.FillEvery, true)
	if d.limits.boundsSignals() {
		slower(d.admissionsEvery(now))
	}
	return every, observed
}

// admissionsEvery returns the mean time between the admissions of the last minute, or since the
// first of the Waiting tickets arrived if that is later. It returns false if there were none.
func (d *admission) admissionsEvery(now time.Time) (time.Duration, bool) {
	since := now
	for _, t := range d.queue.arrivals {
		since = earlier(since, t.arrived)
	}
	since = later(since, now.Add(-intervalWindow))
	n := d.limits.admissions.after(since)
	if n == 0 {
		return unknownStart, false
	}
	return now.Sub(since) / time.Duration(n), true
}

// sample returns the input of the adaptive limit. It does not count exempt starts.
func (d *admission) sample(now time.Time) adaptive.Sample {
	signals := &d.limits.signals
	s := adaptive.Sample{At: now, Made: d.slots.took.n, Lost: d.slots.lost}
	s.Queued = d.queue.couldStart(func(t *Ticket) bool { return t.preparation.since.IsZero() })
	for _, t := range d.slots.inFlight {
		s.Starting += oneIf(t.slot && t.admission != reasons.Exempt)
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
