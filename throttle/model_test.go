package throttle_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// oracle knows the contract of the package and none of its code. It makes random calls through the public API alone.
// It judges each admission by what it has seen itself: the number of starts at a time, the rate, the CPU use with
// what starts owe to it, MaxWait, and the limits of groups. lender judges loans, pacers and claims.
type oracle struct {
	t        *testing.T
	l        *throttle.Limiter
	rng      *rand.Rand
	now      time.Time
	settings throttle.Settings
	limits   map[string]throttle.GroupLimits
	pods     map[string]*modelPod // the pods that have not ended, or run
	overdue  string               // the pod that started over the limit because it was overdue
	oldest   bool                 // among the overdue pods, the one overdue first is next
	// passedOther: it exceeds a limit of a group, the rate or the CPU use. It counts as above that limit until it
	// ends.
	passedOther bool
	stuck       []modelStuck
	tokens      float64   // of the rate, at filled
	filled      time.Time //
	cpu         throttle.Reading
	owing       []time.Time // the admissions
	joined      int
	trace       []string
}

type modelStuck struct {
	namespace string
	until     time.Time
}

// modelPod is what the oracle has seen of a pod.
type modelPod struct {
	uid, namespace string
	ticket         *throttle.Ticket
	priority       int32
	repeats        int
	number         int
	arrived, due   time.Time
	waiters        int
	cores          float64 // that its start is expected to keep busy
	state          throttle.State
	admitted       time.Time
	slot           bool
	groups         []throttle.Membership
	runs, ready    bool
}

func TestOracle(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 7))
		o := &oracle{
			t: t, rng: rng, now: epoch, pods: map[string]*modelPod{},
			settings: throttle.Settings{
				MaxConcurrent: 1 + rng.IntN(4), MaxWait: time.Duration(1+4*(seed%2)) * time.Minute, StartTimeout: 2 * time.Minute,
				NoProgressAfter: -1, NoFairness: seed%5 == 0,
			},
		}
		if seed%3 == 1 {
			o.settings.FillEvery, o.settings.Burst = time.Duration(1+rng.IntN(20))*time.Second, 1+rng.IntN(4)
		}
		if seed%4 >= 2 {
			o.settings.Signals[throttle.SignalCPU] = throttle.SignalLimit{Max: 80, Increment: float64(10 * rng.IntN(4))}
		}
		o.settings.CountCores = seed%5 >= 3
		o.tokens, o.filled = float64(o.settings.Burst), o.now
		o.l = throttle.New(o.now, o.settings)
		o.play(seed)
	}
}

// play makes random calls. It logs them if one fails.
func (o *oracle) play(seed uint64) {
	defer func() {
		if o.t.Failed() {
			o.t.Logf("seed %d, %+v:\n%s", seed, o.settings, strings.Join(o.trace[max(0, len(o.trace)-60):], "\n"))
		}
	}()
	for range 250 {
		o.step()
	}
}

func (o *oracle) step() {
	open := o.in(throttle.Waiting, throttle.Starting)
	waiting := o.in(throttle.Waiting)
	pick := func(from []*modelPod) *modelPod { return from[o.rng.IntN(len(from))] }
	switch n := o.rng.IntN(100); {
	case n < 25 || len(open) == 0:
		o.join()
	case n < 45 && len(waiting) > 0:
		p := pick(waiting)
		o.say("wait %s", p.uid)
		p.waiters++
		p.ticket.Wait(o.now)
	case n < 52 && len(waiting) > 0:
		o.leave(pick(waiting))
	case n < 62 && len(waiting) > 0:
		o.try(pick(waiting))
	case n < 66 && len(waiting) > 0:
		o.deadlineReached(pick(waiting))
	case n < 80:
		o.end(pick(open))
	case n < 83:
		o.policies()
	case n < 86:
		o.finish()
	case n < 90:
		o.measure()
	case n < 92 && len(waiting) > 0:
		p := pick(waiting)
		p.priority = int32(o.rng.IntN(2))
		o.say("priority of %s %d", p.uid, p.priority)
		o.l.Lookup(p.uid).SetPriority(o.now, p.priority, 0)
		p.due = p.arrived.Add(o.settings.MaxWait)
	case n < 94 && len(waiting) > 0:
		p := pick(waiting)
		profile := o.profile(p)
		o.say("expected of %s: %g cores", p.uid, p.cores)
		o.l.SetProfiles(o.now, map[string]throttle.Profile{p.uid: profile})
	default:
		o.now = o.now.Add(time.Duration(o.rng.IntN(30)) * time.Second)
		o.say("advance to %s", o.now.Sub(epoch))
		o.l.Advance(o.now)
	}
	o.judge(nil)
	o.quiet()
}

func (o *oracle) say(format string, args ...any) {
	o.trace = append(o.trace, fmt.Sprintf(format, args...))
}

func (o *oracle) in(states ...throttle.State) (pods []*modelPod) {
	for _, p := range o.pods {
		if slices.Contains(states, p.state) {
			pods = append(pods, p)
		}
	}
	slices.SortFunc(pods, func(a, b *modelPod) int { return a.number - b.number })
	return pods
}

func (o *oracle) join() {
	o.joined++
	p := &modelPod{
		uid: fmt.Sprintf("p%d", o.joined), namespace: fmt.Sprintf("ns%d", o.rng.IntN(3)), number: o.joined,
		priority: int32(o.rng.IntN(2)), repeats: max(0, o.rng.IntN(4)-2), arrived: o.now, state: throttle.Waiting,
	}
	maxWait := time.Duration(0)
	if o.rng.IntN(4) == 0 {
		maxWait = time.Duration(1+o.rng.IntN(90)) * time.Second
	}
	p.due = p.arrived.Add(o.settings.MaxWait)
	if maxWait > 0 {
		p.due = p.arrived.Add(min(o.settings.MaxWait, max(maxWait, 30*time.Second)))
	}
	for _, policy := range []string{"x", "y"} {
		if o.rng.IntN(3) == 0 {
			p.groups = append(p.groups, throttle.Membership{
				Key: throttle.GroupKey{Policy: policy}, Bypass: o.rng.IntN(6) == 0,
				Requests: throttle.Amounts{"cpu": int64(o.rng.IntN(3)) * 500, "memory": int64(o.rng.IntN(2)) * 1000},
			})
		}
	}
	profile := o.profile(p)
	o.say("join %s of %s priority %d repeats %d, max wait %s, cores %g, groups %v", p.uid, p.namespace, p.priority, p.repeats, maxWait, p.cores, p.groups)
	o.pods[p.uid] = p
	p.ticket = o.l.Join(o.now, throttle.Request{
		UID: p.uid, Flow: p.namespace, Priority: p.priority, Repeats: p.repeats, MaxWait: maxWait, Groups: p.groups, Profile: profile,
	})
}

// profile chooses what is known of the pod: nothing, which counts as one core, or a number of cores.
func (o *oracle) profile(p *modelPod) throttle.Profile {
	if p.cores = 1; o.rng.IntN(3) == 0 {
		return throttle.Profile{}
	}
	p.cores = 0.05 + 3*o.rng.Float64()*o.rng.Float64()
	return throttle.Profile{Cost: &costs.Cost{Count: 3, Peak: costs.Figure{Mean: p.cores}}}
}

// slotsFull reports whether p gets no slot: too many starts are under way, or they keep too many cores busy.
func (o *oracle) slotsFull(p *modelPod) bool {
	starting := o.in(throttle.Starting)
	if !o.settings.CountCores {
		return len(starting) >= o.settings.MaxConcurrent
	}
	return len(starting) > 0 && coresOf(append(starting, p)...) > float64(o.settings.MaxConcurrent)+1e-6
}

// exceeded reports whether more starts are under way than there are slots.
func (o *oracle) exceeded() bool {
	starting := o.in(throttle.Starting)
	if !o.settings.CountCores {
		return len(starting) > o.settings.MaxConcurrent
	}
	return len(starting) > 1 && coresOf(starting...) > float64(o.settings.MaxConcurrent)+1e-6
}

func coresOf(pods ...*modelPod) (sum float64) {
	for _, p := range pods {
		sum += p.cores
	}
	return sum
}

// measure tells the limiter a CPU use. Sometimes the sensor is blind.
func (o *oracle) measure() {
	o.cpu = throttle.Reading{Value: float64(o.rng.IntN(120)), From: o.now.Add(-2 * time.Second), To: o.now}
	if o.rng.IntN(8) == 0 {
		o.cpu.Err = errors.New("blind")
	}
	o.say("cpu %g, %v", o.cpu.Value, o.cpu.Err)
	o.l.Observe(o.now, throttle.Signals{throttle.SignalCPU: o.cpu})
}

// fill fills the bucket of the rate up to now.
func (o *oracle) fill() {
	if every := o.settings.FillEvery; every > 0 {
		o.tokens = min(float64(o.settings.Burst), o.tokens+o.now.Sub(o.filled).Seconds()/every.Seconds())
	}
	o.filled = o.now
}

// nodeFull reports whether the rate or the CPU use allows no start now. If the tokens are within rounding of a whole
// one, sure is false.
func (o *oracle) nodeFull() (full, sure bool) {
	o.fill()
	sure = o.settings.FillEvery <= 0 || math.Abs(o.tokens-1) > 1e-6
	if o.settings.FillEvery > 0 && o.tokens < 1 {
		return true, sure
	}
	limit := o.settings.Signals[throttle.SignalCPU]
	if limit.Max <= 0 || o.cpu.To.IsZero() || o.cpu.Err != nil || o.now.Sub(o.cpu.To) > 30*time.Second {
		return false, sure
	}
	owed := 0.0
	for _, at := range o.owing {
		if at.After(o.cpu.From) {
			owed += limit.Increment
		}
	}
	return o.cpu.Value+owed >= limit.Max, sure
}

// pays takes a token, if one is there, and owes to the CPU use.
func (o *oracle) pays() {
	o.fill()
	if o.settings.FillEvery > 0 && o.tokens >= 1-1e-6 {
		o.tokens--
	}
	o.owing = append(o.owing, o.now)
}

func (o *oracle) leave(p *modelPod) {
	o.say("stop waiting %s", p.uid)
	p.waiters = max(0, p.waiters-1)
	p.ticket.StopWaiting(o.now)
}

func (o *oracle) try(p *modelPod) {
	o.say("try %s", p.uid)
	p.waiters++
	d := p.ticket.TryStart(o.now)
	o.judge(nil)
	p.waiters--
	require.Equal(o.t, p.state == throttle.Starting, d.Granted)
	if v, _ := o.l.View(o.now, p.uid); !d.Granted {
		require.Equal(o.t, throttle.Decision{Reason: v.Reason, Held: v.Held, Ahead: v.Ahead}, d, "the answer is where it stands")
	}
}

func (o *oracle) deadlineReached(p *modelPod) {
	o.say("deadline of %s", p.uid)
	p.waiters++
	d := p.ticket.DeadlineReached(o.now)
	o.judge(p)
	p.waiters--
	require.Equal(o.t, p.state == throttle.Starting, d.Granted)
}

func (o *oracle) end(p *modelPod) {
	reason := []reasons.Reason{reasons.Ready, reasons.Failed, reasons.Deleted}[o.rng.IntN(3)]
	o.say("end %s %s", p.uid, reason)
	p.ticket.End(o.now, reason)
}

func (o *oracle) finish() {
	for _, p := range o.in(throttle.Started, throttle.Gone) {
		if p.runs && o.rng.IntN(2) == 0 {
			o.say("finished %s", p.uid)
			p.runs, p.ready = false, false
			o.l.Finished(o.now, p.uid)
			o.judge(nil)
		}
	}
}

func (o *oracle) policies() {
	bound := func() (b throttle.Bound) {
		if o.rng.IntN(3) == 0 {
			n := int64(o.rng.IntN(5))
			b.Pods = &n
		}
		if o.rng.IntN(2) == 0 {
			b.Requests = throttle.Amounts{"cpu": int64(o.rng.IntN(6)) * 500}
		}
		return b
	}
	o.limits = map[string]throttle.GroupLimits{"x": {Starting: bound()}, "y": {Running: bound(), Starting: bound()}}
	o.say("policies %+v", o.limits)
	o.l.SetPolicies(o.now, o.limits)
}

// judge takes the events in their order. It judges each admission by what was known just before it.
func (o *oracle) judge(reached *modelPod) {
	for _, e := range o.l.Drain() {
		p := o.pods[e.Ticket.UID()]
		o.say("-> %s %s %s", e.State, e.Reason, p.uid)
		switch e.State {
		case throttle.Starting:
			o.judgeAdmission(p, e.Reason)
			o.pays()
			p.state, p.admitted, p.slot, p.runs, p.ready = throttle.Starting, o.now, true, true, false
		case throttle.Started, throttle.Gone:
			o.ended(p, e)
		case throttle.Waiting:
			if e.Reason != "" {
				require.Equal(o.t, reasons.GateExpired, e.Reason)
				require.Same(o.t, reached, p)
			}
		}
		require.Equal(o.t, len(o.in(throttle.Waiting)), e.Waiting)
		require.Equal(o.t, len(o.in(throttle.Starting)), e.Starting)
	}
}

func (o *oracle) ended(p *modelPod, e throttle.Event) {
	switch e.Reason {
	case reasons.Stuck:
		require.GreaterOrEqual(o.t, o.now.Sub(p.admitted), o.settings.StartTimeout)
		o.stuck = append(o.stuck, modelStuck{p.namespace, o.now.Add(o.settings.StartTimeout)})
	case reasons.Abandoned:
		require.Zero(o.t, p.waiters, "the ticket ends while a process waits")
	}
	was := p.state
	p.state = throttle.Started
	if was == throttle.Waiting || e.Reason == reasons.Deleted {
		p.state = throttle.Gone
	}
	p.ready = p.runs && was == throttle.Starting && e.Reason == reasons.Ready
	if o.overdue == p.uid || !o.exceeded() && !o.passedOther {
		o.overdue = ""
	}
}

// judgeAdmission fails the test for an admission that the contract does not allow.
func (o *oracle) judgeAdmission(p *modelPod, reason reasons.Reason) {
	over := o.slotsFull(p)
	full, sure := o.nodeFull()
	require.Equal(o.t, throttle.Waiting, p.state)
	require.Positive(o.t, p.waiters, "no process waits for %s", p.uid)
	require.False(o.t, o.runningFull(p), "%s exceeds a bound of Running", p.uid)
	switch reason {
	case reasons.WithinLimits:
		require.False(o.t, over, "%s is above the limit", p.uid)
		require.False(o.t, full && sure, "the rate or the CPU use holds %s", p.uid)
		require.False(o.t, o.startingFull(p), "%s exceeds a bound of Starting", p.uid)
		o.judgeOrder(p)
		return
	case reasons.MaxWait:
		require.False(o.t, o.now.Before(p.due), "%s is not overdue", p.uid)
		o.judgeUrgency(p)
		o.oldest = !o.oldest
	default:
		require.Fail(o.t, "unknown reason of an admission", reason)
	}
	if beyond := full || o.startingFull(p); over || beyond {
		require.Empty(o.t, o.overdue, "%s is the second overdue start over the limit", p.uid)
		o.overdue, o.passedOther = p.uid, beyond
	}
}

// judgeOrder fails the test for an admission out of order. The order is the namespace with the fewest starts, priority,
// first starts, arrival. All pods may pass a pod that a bound of a group holds, or may be reserving for.
func (o *oracle) judgeOrder(p *modelPod) {
	for _, other := range o.in(throttle.Waiting) {
		if other == p || other.waiters == 0 || o.startingFull(other) || o.runningFull(other) || len(other.groups) > 0 {
			continue
		}
		require.False(o.t, o.before(other, p), "%s goes before %s", other.uid, p.uid)
	}
}

func (o *oracle) before(a, b *modelPod) bool {
	if x, y := o.load(a.namespace), o.load(b.namespace); x != y {
		return x < y
	}
	switch {
	case a.priority != b.priority:
		return a.priority > b.priority
	case a.repeats != b.repeats:
		return a.repeats < b.repeats
	}
	if !a.arrived.Equal(b.arrived) {
		return a.arrived.Before(b.arrived)
	}
	return a.number < b.number
}

func (o *oracle) load(namespace string) (n int) {
	if o.settings.NoFairness {
		return 0
	}
	for _, p := range o.in(throttle.Starting) {
		if p.namespace == namespace {
			n++
		}
	}
	for _, s := range o.stuck {
		if s.namespace == namespace && o.now.Before(s.until) {
			n++
		}
	}
	return n
}

// judgeUrgency judges whether the overdue pods keep the order of the queue. Every second time, the pod that was
// overdue first goes first.
func (o *oracle) judgeUrgency(p *modelPod) {
	for _, other := range o.in(throttle.Waiting) {
		if other == p || other.waiters == 0 || o.now.Before(other.due) || len(other.groups) > 0 {
			continue
		}
		if o.oldest && !other.due.Equal(p.due) {
			require.True(o.t, p.due.Before(other.due), "%s is overdue before %s", other.uid, p.uid)
			continue
		}
		require.False(o.t, o.before(other, p), "%s is more urgent than %s", other.uid, p.uid)
	}
}

func (o *oracle) runningFull(p *modelPod) bool {
	return !p.runs && o.full(p, func(l throttle.GroupLimits) throttle.Bound { return l.Running }, func(other *modelPod) bool { return other.runs })
}

func (o *oracle) startingFull(p *modelPod) bool {
	return o.full(p, func(l throttle.GroupLimits) throttle.Bound { return l.Starting }, func(other *modelPod) bool { return other.state == throttle.Starting })
}

// full reports whether a bound has no room for one more pod. It counts all pods again.
func (o *oracle) full(p *modelPod, of func(throttle.GroupLimits) throttle.Bound, counts func(*modelPod) bool) bool {
	for _, in := range p.groups {
		bound := of(o.limits[in.Key.Policy])
		if in.Bypass {
			continue
		}
		pods, used := int64(0), throttle.Amounts{}
		for _, other := range o.pods {
			for _, part := range other.groups {
				if part.Key == in.Key && counts(other) {
					pods++
					used["cpu"] += part.Requests["cpu"]
				}
			}
		}
		if bound.Pods != nil && pods >= *bound.Pods {
			return true
		}
		if most, bounded := bound.Requests["cpu"]; bounded && in.Requests["cpu"] > 0 && used["cpu"]+in.Requests["cpu"] > most {
			return true
		}
	}
	return false
}

// quiet fails the test if the limiter leaves a slot idle.
func (o *oracle) quiet() {
	starting := o.in(throttle.Starting)
	holds := func(p *modelPod) bool { return p.waiters > 0 && o.slotsFull(p) }
	if full, sure := o.nodeFull(); !slices.ContainsFunc(o.in(throttle.Waiting), holds) && sure && !full {
		for _, p := range o.in(throttle.Waiting) {
			require.False(o.t, p.waiters > 0 && len(p.groups) == 0, "%s waits beside a free slot", p.uid)
		}
	}
	s := o.l.Snapshot(o.now)
	require.Len(o.t, s.Waiting, len(o.in(throttle.Waiting)))
	require.Len(o.t, s.Starting, len(starting))
	for _, p := range o.pods {
		state, _ := p.ticket.Status()
		require.Equal(o.t, p.state, state, p.uid)
	}
}
