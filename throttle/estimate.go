package throttle

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Estimates
//
// A start is expected to take as long as the median of the last 16 that ended, or as the
// starts under way have taken in the median if that is longer: what has not ended teaches, too.
// While none has ended, it is expected to take twice as long as the oldest, and at least
// 15 seconds. Half of the starts of an age end before they are twice as old (the law of Lindy): so
// one that takes longer than expected takes as long again. The expected wait of a ticket is when
// its slot is free if the starts before it take slots in turn, and at least what a slower limit
// gives.
//
// A place in the gate is a promise that the pod's turn comes within the time T that a process can
// wait there. It is given if that is so though every start before it takes as long as it does
// with a probability of less than 1 %:
//
//   - 12 times the mean, and twice the longest, of the last 128 starts, if one of its kind is among
//     them. All starts become slower together, so more slots make nothing surer.
//   - If none is, the same for starts of n other kinds, and 100/n(n+1) times their mean at least:
//     of log-normal durations that spread by a factor of three between kinds, the next is longer
//     than 50, 15 or 9 times the longest of one, two or three in one case of a hundred.
//   - 100 times its age, if it is under way for more than twice the longest (Lindy again).
//   - StartTimeout in any case, and if nothing has ended since the herd began (nothing started for
//     10 s before but exempt and adopted starts, and no pod waited for the node): then only free slots are promised. What an
//     earlier herd took says nothing for sure, as the same image may do other work.
//
// Each start takes StartTimeout unless it is as improbable that longer ones take all slots. When n starts
// have ended and j others last longer, the next does so with (j+1)/(n+j+2), the rule of succession, and so many
// of several as the beta-binomial distribution says. With j = 0, the first place behind full slots is given
// when so many have ended: 99 with one slot, 12 with two, 4 with four, 2 with eight.
//
// Before the pod go those before it in the queue that occupy the gate or are awaited. Those behind
// it that occupy the gate must still get their turn before their deadline, unless its priority is
// higher or their containers ran more often. Without that, pods that came back
// one after the other could starve a pod with a place. In its own flow and band, an awaited pod counts only if it comes
// back before the turn of this one: a slot that is free now goes to the first that asks. A promise is kept for the 20
// seconds in which the pod is to come. An overdue pod gets a place if it starts at once, over the limit. For a
// container that ran before ([RetriedLate]), the turn must be expected in T/2: a refusal costs as much as a place that
// runs out. The rate limit and limits on signals limit the places to what they admit in T/2, but while no limit on a
// signal has held a start for 15 s, each free slot has a place. While the next token comes only after T, there is no
// place. In a jam there are places for what loans will allow within half a minute, and in any case for the slots that
// the starts of other flows leave to that of the pod. Bounds on the starts of a group allow what the same estimate
// promises, and its own groups one pod more if a start of theirs is expected to end in T/2, each taking as long as the
// mean of its kind, or if a loan is near. While a group has no claims, nobody knows when it will: then one pod of it
// may be there, unless the pod waits on where it is ([WaitsOn]). A container that ran before may come beside the starts
// of its groups in any case.
//
// A pull permit lets a pod pull its images; there are MaxPulling of them. A free one goes to the
// first pod that comes back, unless it is kept for a pod that is awaited, lacks nothing else, and
// is of a flow with fewer pulls or, with as many, of a higher priority. With permits kept for the
// first in the queue, pods that pull would take a third longer.

const (
	// unknownStart is the duration of a start that is expected until one was observed.
	unknownStart = 15 * time.Second
	// slowdown is by how much starts may become slower while all pods in the gate still get their turn in time.
	slowdown = 12
	// unlikely is how many places in the gate there are for one that runs out.
	unlikely = 100
	// herdsApart is how long nothing that is paced starts between two herds, and no pod waits that could.
	herdsApart = 10 * time.Second
)

// history is how long the latest starts took that ended as started.
type history struct {
	last  [128]endedStart
	n     int
	herd  int             // how many had ended when the present herd began
	ended time.Time       // when the latest ended; zero if none has
	kinds map[string]seen // what is seen of the present herd in last, by kind; "": of all
	known int             // how many kinds these are; starts without a known kind are of different kinds
}

type endedStart struct {
	kind string
	took time.Duration
}

// seen is what starts took.
type seen struct {
	starts       time.Duration // how many
	sum, longest time.Duration
}

func (h *history) add(kind string, admitted time.Time, took time.Duration) {
	h.last[h.n%len(h.last)] = endedStart{kind, max(took, time.Millisecond)}
	h.n++
	h.ended = admitted.Add(took)
	h.kinds, h.known = map[string]seen{}, 0
	for i := max(h.herd, h.n-len(h.last)); i < h.n; i++ {
		e := h.last[i%len(h.last)]
		h.known += oneIf(e.kind == "" || h.kinds[e.kind].starts == 0)
		h.see(e.kind, e)
		if e.kind != "" {
			h.see("", e)
		}
	}
}

// begin notes that a pod comes while nothing that is paced starts, and nothing waits but pods that a policy holds or that
// kubelet cannot make. After herdsApart that is another herd, and its starts may be of other work than those before, also
// of the same images: nothing is sure of them.
func (h *history) begin(now time.Time) {
	if h.n > h.herd && now.Sub(h.ended) >= herdsApart {
		h.herd, h.kinds, h.known = h.n, nil, 0
	}
}

func (h *history) see(kind string, e endedStart) {
	s := h.kinds[kind]
	h.kinds[kind] = seen{s.starts + 1, s.sum + e.took, max(s.longest, e.took)}
}

// of returns the kind and what was seen of it, or "" and what was seen of all starts if none of the kind was seen.
func (h *history) of(kind string) (string, seen) {
	if s, known := h.kinds[kind]; known {
		return kind, s
	}
	return "", h.kinds[""]
}

// median returns the median of the latest 16 durations, or zero if there are none.
func (h *history) median() time.Duration {
	var sorted [16]time.Duration
	n := min(h.n, len(sorted))
	if n == 0 {
		return 0
	}
	for i := range n {
		sorted[i] = h.last[(h.n-1-i)%len(h.last)].took
	}
	slices.Sort(sorted[:n])
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// expected returns how long a start is expected to take, as said above. It returns false if no start
// has ended yet.
func (s *slots) expected(now time.Time) (time.Duration, bool) {
	since := s.admittedAt()
	switch median := s.took.median(); {
	case len(since) == 0:
		return cmp.Or(median, unknownStart), median > 0
	case median == 0:
		return max(unknownStart, 2*now.Sub(since[0])), false
	default:
		return max(median, now.Sub(since[len(since)/2])), true
	}
}

// forecast says when slots become free, if every start takes as long as it says.
type forecast struct {
	now      time.Time
	history  *history
	surely   bool          // starts take as long as is nearly certain, not as long as is expected
	byKind   bool          // a start takes as long as is expected of its kind
	expected time.Duration // how long a start is expected to take
	timeout  time.Duration // after that, a start holds no slot
	slots    soonest       // when each slot is free, from now, or nil if nothing limits the starts
	latest   soonest       // when each slot is free, from now, if every start takes until the timeout
	first    first         // the starts that take the slots first
	doubtful bool          // it is not sure that a slot becomes free before the timeout, nor is it after more starts
}

// forecast returns when slots become free. A number of them is lent to the next pod and those of its flow, see lentTo.
func (d *admission) forecast(now time.Time, surely bool, lent int) *forecast {
	s := d.slots
	f := &forecast{now: now, history: &s.took, surely: surely, timeout: d.settings.StartTimeout}
	f.expected, _ = s.expected(now)
	if s.limit == noLimit {
		return f
	}
	f.slots = make(soonest, 0, s.capacity())
	for _, t := range s.inFlight {
		if t.slot {
			f.slots = append(f.slots, f.left(t))
			f.latest = append(f.latest, max(0, f.timeout-now.Sub(t.admitted)))
			f.comesFirst(&f.first, t)
		}
	}
	slices.Sort(f.slots)
	slices.Sort(f.latest)
	free := max(max(s.capacity(), s.allowsSoon(now, d.queue))-len(f.slots), s.lentSoon(now), lent)
	atOnce, none := make(soonest, max(0, free)), max(0, -free) // the first starts that end may leave no slot free
	f.slots, f.latest = slices.Concat(atOnce, f.slots[none:]), slices.Concat(atOnce, f.latest[none:])
	return f
}

// soonest are the times at which slots are free, as a heap: the soonest is the first. A sorted slice is one.
type soonest []time.Duration

// take takes the slot that is free soonest, for a time.
func (s soonest) take(takes time.Duration) {
	s[0] += takes
	for at := 0; ; {
		next := 2*at + 1
		if next+1 < len(s) && s[next+1] < s[next] {
			next++
		}
		if next >= len(s) || s[at] <= s[next] {
			return
		}
		s[at], s[next] = s[next], s[at]
		at = next
	}
}

// first are starts that take slots before others.
type first struct {
	starts int // how many
	longer int // how many of them are under way for longer than those that ended
	seen   int // how many starts have ended of the least known of their kinds
}

// comesFirst adds a start, which may be under way.
func (f *forecast) comesFirst(before *first, t *Ticket) {
	if !f.surely {
		return
	}
	kind, seen := f.history.of(t.profile.Kind)
	before.longer += oneIf(!t.admitted.IsZero() && f.outgrown(t, seen))
	known := f.history.comparable(kind)
	if before.starts == 0 || known < before.seen {
		before.seen = known
	}
	before.starts++
}

// comparable returns of how many starts, or of how many kinds if none of its own was seen, it is known how long they took.
func (h *history) comparable(kind string) int {
	if kind, seen := h.of(kind); kind != "" {
		return int(seen.starts)
	}
	return h.known
}

// leaveOneOf reports whether, in 99 of 100 cases, the starts leave one of the slots free before the timeout: whether not all
// are taken by starts that last longer than any that has ended. seen starts have ended, and longer ones under way last
// longer. So with a uniform prior the next start does with a probability of (longer+1)/(seen+longer+2), the rule of
// succession, and how many of several do is beta-binomial.
func (f first) leaveOneOf(slots int) bool {
	slots, next := slots-f.longer, f.starts-f.longer
	if next < slots {
		return true
	}
	long, short := float64(f.longer+1), float64(f.seen+1)
	chance, below := 1.0, 0.0 // of x long ones among the next; of less than that
	for i := range f.longer + 1 {
		chance *= (short + float64(i)) / (short + float64(next+i)) // in the end, of none
	}
	for x := range slots {
		if below += chance; (1-below)*unlikely <= 1 {
			return true
		}
		chance *= float64(next-x) / float64(x+1) * (long + float64(x)) / (short + float64(next-x-1))
	}
	return false
}

// outgrown reports whether a start under way takes much longer than those that were seen.
func (f *forecast) outgrown(t *Ticket, than seen) bool {
	return than.starts > 0 && f.now.Sub(t.admitted) > 2*than.longest
}

// takes returns how long a start of the ticket takes that begins later.
func (f *forecast) takes(t *Ticket) time.Duration {
	switch {
	case f.byKind:
		return f.expectedOf(t)
	case !f.surely:
		return f.expected
	}
	kind, seen := f.history.of(t.profile.Kind)
	if seen.starts == 0 {
		return f.timeout
	}
	most := max(2*seen.longest, slowdown*seen.sum/seen.starts)
	if n := f.history.known; kind == "" {
		most = max(most, most*unlikely/slowdown/time.Duration(n*(n+1)))
	}
	return min(most, f.timeout)
}

// left returns how long a start still takes that is under way.
func (f *forecast) left(t *Ticket) time.Duration {
	age := f.now.Sub(t.admitted)
	left := f.takes(t) - age
	if _, seen := f.history.of(t.profile.Kind); f.surely && f.outgrown(t, seen) {
		left = unlikely * age
	} else if left <= 0 {
		left = age // half of the starts of any age end before they are twice as old
	}
	return max(0, min(left, f.timeout-age))
}

// turn returns when the next slot is free, from now.
func (f *forecast) turn() time.Duration {
	switch {
	case len(f.slots) == 0:
		return 0
	case f.doubtful || !f.first.leaveOneOf(len(f.slots)):
		f.doubtful = true
		return f.latest[0]
	default:
		return f.slots[0]
	}
}

// start takes the next slot for a start of the ticket.
func (f *forecast) start(t *Ticket) {
	if len(f.slots) > 0 {
		f.slots.take(f.takes(t))
		f.latest.take(f.timeout)
		f.comesFirst(&f.first, t)
	}
}

// starts returns how many starts like the ticket's can begin within a time in a number of slots. The tickets in taken
// are under way and hold some of the slots.
func (f *forecast) starts(within time.Duration, t *Ticket, taken []*Ticket, slots int) int {
	var before first
	all, latest := 0, 0 // if they take as long as is sure of each, and until the timeout
	takes := max(time.Millisecond, f.takes(t))
	for i := range slots {
		left, ends := time.Duration(0), time.Duration(0)
		if i < len(taken) {
			left, ends = f.left(taken[i]), max(0, f.timeout-f.now.Sub(taken[i].admitted))
			f.comesFirst(&before, taken[i])
		}
		if left <= within {
			all += 1 + int((within-left)/takes)
		}
		if ends <= within {
			latest += 1 + int((within-ends)/f.timeout)
		}
	}
	if !f.surely {
		return max(latest, all)
	}
	under := before.starts
	f.comesFirst(&before, t) // its kind counts, too
	return max(latest, sort.Search(all, func(begun int) bool {
		before.starts = under + begun
		return !before.leaveOneOf(slots)
	}))
}

// quota returns how many pods the rate and the limits on signals are expected to admit within a time.
func (d *admission) quota(now time.Time, within time.Duration) int {
	quota, half := float64(math.MaxInt32), within.Seconds()/2
	if d.settings.FillEvery > 0 {
		quota = d.limits.bucket.TokensAt(now) + half/d.settings.FillEvery.Seconds()
	}
	if d.limits.limitsSignals() {
		starts := 1.0
		if every, known := d.admissionsEvery(now); known {
			starts = half / max(every, 1).Seconds()
		}
		if soon := d.slots.allowsSoon(now, d.queue); soon != noLimit { // else the signals alone say how many are too many
			starts = max(starts, min(float64(soon-d.slots.taken()), d.limits.allowAtOnce(now)))
		}
		quota = min(quota, starts)
	}
	return max(1, int(quota))
}

// allowForecast makes the bounds on the starts of a group allow what is expected to start within a time.
func (f *forecast) allowForecast(s scan, within time.Duration, t *Ticket, g *group) {
	for i := range g.bounds {
		if b := &g.bounds[i]; b.reason != reasons.PolicyRunning && b.limit != anyNumber && b.asking > 0 {
			s.of(b).allows = b.used + b.asked/float64(b.asking)*float64(f.startsOf(within, t, b))
		}
	}
}

// startsOf returns how many starts a bound is expected to let begin within a time. Of a resource, each start counts as the
// mean of those that wait or are under way and ask for it: no more than these can start.
func (f *forecast) startsOf(within time.Duration, t *Ticket, b *bound) int {
	each := b.asked / float64(b.asking)
	taken := slices.DeleteFunc(slices.Clone(b.group.starting), func(o *Ticket) bool { return !o.pod.asksFor(b) })
	free := math.Floor(max(0, b.limit-b.used) / each)
	slots := min(b.limit/each, float64(len(taken))+free, float64(b.asking))
	return f.starts(within, t, taken, int(slots))
}

// lendsSoon reports whether half of the time has passed until a loan of the bound, as for a node in lentSoon, and the
// loan comes in half of the time that a process can wait.
func (d *admission) lendsSoon(now time.Time, waitable time.Duration, b *bound) bool {
	after := d.settings.NoProgressAfter
	due := b.loan.due(b.jam(), after)
	return !due.IsZero() && due.Sub(now) <= min(after, waitable)/2
}

// expectedOf returns how long a start of the ticket's kind is expected to take: the mean of its kind. If none of the kind has
// ended in this herd, it is what one start of a hundred exceeds if kinds are of log-normal durations, as for a promise;
// without a kind it is what is expected of all.
func (f *forecast) expectedOf(t *Ticket) time.Duration {
	kind, seen := f.history.of(t.profile.Kind)
	switch {
	case seen.starts == 0:
		return f.timeout
	case kind != "":
		return seen.sum / seen.starts
	case t.profile.Kind == "":
		return f.expected
	}
	n := f.history.known
	return min(f.timeout, max(2*seen.longest, unlikely*seen.sum/seen.starts/time.Duration(n*(n+1))))
}

// asksFor reports whether the pod asks for a bound.
func (p *pod) asksFor(b *bound) bool {
	return slices.ContainsFunc(p.asks, func(a ask) bool { return a.bound == b })
}

// allowOneMore makes the bounds on starts of the ticket's own groups allow it beside the starts under way, where no more is
// sure:
//   - if the ticket was promised this, until a container of it is made: to refuse that is no crash;
//   - if a slot of the group is expected to be free in half of the time;
//   - if a pod with a process gets a loan soon, because the starts under way make no progress;
//   - without claims, because nobody knows when they come; but not for a pod that is not refused;
//   - for a container that ran before, and without claims for any number of these.
func (d *admission) allowOneMore(s scan, expected *forecast, t *Ticket, promised bool, waitable time.Duration) {
	late := t.refusal == RetriedLate
	for i := range t.pod.asks {
		a := &t.pod.asks[i]
		b := a.bound
		claimless := b.reason == reasons.PolicyClaim && b.limit == 0
		switch {
		case b.reason == reasons.PolicyRunning || b.limit == anyNumber:
		case claimless && late:
			s.of(b).allows = anyNumber
		case late, promised, claimless && t.refusal != WaitsOn, d.lendsSoon(expected.now, waitable, b), expected.startsOf(waitable/2, t, b) > 0:
			s.of(b).allows = max(s.of(b).allows, b.used+a.amount)
		}
	}
}

// interval returns the expected time between two admissions by the slowest limit; zero if no limit is
// set. It is a guess if observed is false.
func (d *admission) interval(now time.Time) (every time.Duration, observed bool) {
	every, observed = d.othersInterval(now)
	if d.slots.limit == noLimit {
		return every, observed
	}
	expected, known := d.slots.expected(now)
	since, rate := d.slots.admittedAt(), 0.0
	for _, at := range since {
		total := expected
		if age := now.Sub(at); age > expected {
			total = 2 * age
		}
		rate += 1 / total.Seconds()
	}
	taken := len(since)
	if free := d.slots.limit - taken; free > 0 {
		rate, taken = rate+float64(free)/expected.Seconds(), d.slots.limit
	}
	rate *= float64(d.slots.limit) / float64(taken)
	return max(every, time.Duration(math.Round(float64(time.Second)/rate))), observed && known
}

// othersInterval is interval for the limits other than the number of starts at a time. For a limit on a signal, it is
// the mean time between the latest admissions.
func (d *admission) othersInterval(now time.Time) (every time.Duration, observed bool) {
	every, observed = d.settings.FillEvery, true
	if d.limits.limitsSignals() {
		latest, known := d.admissionsEvery(now)
		return max(every, latest), known
	}
	return every, observed
}

// admissionsEvery returns the mean time between the admissions of the last minute, or since the
// first of the Waiting tickets arrived if that is later. It returns false if there were none.
func (d *admission) admissionsEvery(now time.Time) (time.Duration, bool) {
	since := now
	for _, t := range d.queue.arrivals {
		since = notAfter(since, t.arrived)
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
	s.Queued = d.queue.couldStart(1, func(t *Ticket) bool { return t.preparation.since.IsZero() }) > 0
	for _, t := range d.slots.inFlight {
		if t.slot && t.admission != reasons.Exempt {
			s.Starting++
			if t.use.WaitedKnown {
				s.Ran, s.Waited = s.Ran+t.use.Cores-t.use.Waited, s.Waited+t.use.Waited
			}
		}
	}
	if d.pause.held(now).none() && d.limits.held(now).none() {
		s.Waiting = d.queue.couldStart(1, (*Ticket).waits) > 0
	}
	s.CPU, s.CPUKnown = signals.valueAt(now, SignalCPU)
	s.Refusals = signals[SignalCPU].Refusals
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

// turns returns a function that says when a ticket is expected to be admitted, from now, that has so many ahead. held: a
// limit of the node holds the next one. The function must be called with rising numbers. The limits on signals make nobody
// wait for those before it among as many as they allow at this moment.
func (d *admission) turns(now time.Time) func(t *Ticket, ahead int, held bool) time.Duration {
	f := d.forecast(now, false, 0)
	every, _ := d.othersInterval(now)
	first := every // until the limit that holds the next one allows it
	atOnce := int(max(1, min(d.limits.allowAtOnce(now), math.MaxInt32)))
	if next := d.limits.heldByRate(now); !next.none() && !d.limits.limitsSignals() {
		first = next.Until.Sub(now).Round(time.Millisecond)
	}
	started := 0
	lent := map[*flow]int{}
	return func(t *Ticket, ahead int, held bool) time.Duration {
		for ; started < ahead; started++ {
			f.start(nil)
		}
		if _, known := lent[t.flow]; !known {
			lent[t.flow] = d.slots.lentTo(now, t.flow)
		}
		slot := f.turn()
		if ahead < lent[t.flow] {
			slot = 0
		}
		byRate, bySignals := time.Duration(ahead)*d.settings.FillEvery, time.Duration(max(0, ahead+1-atOnce))*every
		return max(slot, max(byRate, bySignals)+time.Duration(oneIf(held))*first)
	}
}
