package throttle_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// The processes in the gate reach their deadlines one after the other. The high priorities lose no slot to them.
func TestDeadlinesInTheGateDoNotChangeTheOrder(t *testing.T) {
	t.Parallel()
	p := newPlay(t, throttle.Settings{MaxConcurrent: 1, NoFairness: true}, map[string]time.Duration{"high": 20 * time.Second, "low": 15 * time.Second})
	for i := range 20 {
		p.joinWaiting(fmt.Sprintf("high-%02d", i), throttle.Request{Priority: 1000})
	}
	for i := range 60 {
		p.joinWaiting(fmt.Sprintf("low-%02d", i), throttle.Request{})
	}
	for p.admitted("high") < 20 {
		for i := range 60 {
			if ticket := p.l.Lookup(fmt.Sprintf("low-%02d", i)); ticket != nil {
				ticket.DeadlineReached(p.now)
				p.look()
			}
		}
		require.True(t, p.admitted("low") == 0 || p.admitted("high") == 20)
		p.pass(time.Second)
		require.Less(t, p.now.Sub(epoch), time.Hour)
	}
}

// The requests of the pods may be huge, and the pods many: their sum does not wrap round.
func TestAmountsDoNotWrapRound(t *testing.T) {
	t.Parallel()
	p := newPlay(t, throttle.Settings{MaxConcurrent: 1}, nil)
	huge := throttle.Amounts{"memory": 1 << 62}
	p.l.SetPolicies(p.now, map[string]throttle.GroupLimits{"p": {Running: throttle.Bound{Requests: throttle.Amounts{"memory": 1 << 55}}}})
	for i := range 1500 {
		p.l.SetGroups(p.now, throttle.PodGroups{UID: fmt.Sprint("runs-", i), Groups: inGroup(huge), Running: true})
		require.False(t, p.l.Join(p.now, throttle.Request{UID: "more", Groups: inGroup(throttle.Amounts{"memory": 1})}).TryStart(p.now).Granted && i > 1, i)
		p.l.Lookup("more").End(p.now, reasons.Deleted)
		p.l.Finished(p.now, "more")
	}
}

// A reservation whose pod never came expires in time. Any pod that asks finds it free, even if the limiter was not
// advanced before.
func TestTryStartForgetsAReservationWhosePodNeverCame(t *testing.T) {
	t.Parallel()
	p := newPlay(t, throttle.Settings{}, nil)
	p.l.SetPolicies(p.now, map[string]throttle.GroupLimits{"p": {Running: throttle.Bound{Pods: new(int64(1))}}})
	never := p.l.Join(p.now, throttle.Request{UID: "never", Groups: inGroup(nil)})
	require.True(t, never.Reserve(p.now, time.Minute, throttle.RetriedSoon).Granted)
	comes := p.l.Join(p.now, throttle.Request{UID: "comes", Groups: inGroup(nil)})
	require.False(t, comes.TryStart(p.now.Add(19*time.Second)).Granted)
	require.True(t, comes.TryStart(p.now.Add(20*time.Second)).Granted)
}

// A pod is overdue, and its group holds it. It cannot pass now, and keeps no slot from another overdue pod.
func TestAHeldOverduePodKeepsNoSlotFromAnother(t *testing.T) {
	t.Parallel()
	p := newPlay(t, throttle.Settings{MaxConcurrent: 2, MaxWait: time.Minute, StartTimeout: time.Hour}, nil)
	p.l.SetPolicies(p.now, map[string]throttle.GroupLimits{"p": {Starting: throttle.Bound{Pods: new(int64(0))}}})
	for _, name := range []string{"a-0", "a-1"} {
		p.joinWaiting(name, throttle.Request{})
	}
	for i := range 3 {
		p.joinWaiting(fmt.Sprintf("held-%d", i), throttle.Request{Priority: 9, Groups: inGroup(nil)})
	}
	p.joinWaiting("b-0", throttle.Request{})
	p.pass(61 * time.Second)
	require.Equal(t, 1, p.admitted("held"), "one pod passes both limits")
	for i := range 3 {
		p.joinWaiting(fmt.Sprintf("high-%d", i), throttle.Request{Priority: 10})
	}
	p.l.Lookup("a-0").End(p.now, reasons.Ready)
	p.l.Lookup("a-1").End(p.now, reasons.Ready)
	p.look()
	require.Equal(t, 1, p.admitted("high"), "it is the queue's turn")
	p.l.Lookup("high-0").End(p.now, reasons.Ready)
	p.look()
	require.Equal(t, 1, p.admitted("b"), "then an overdue pod: no other pod of the group may pass now")
}

// A caller may keep a ticket that has ended. Its calls do not affect the pod's next ticket.
func TestAnEndedTicketDoesNotAffectTheNext(t *testing.T) {
	t.Parallel()
	p := newPlay(t, throttle.Settings{MaxConcurrent: 1}, nil)
	holder := p.joinWaiting("holder", throttle.Request{})
	old := p.joinWaiting("a", throttle.Request{})
	old.End(p.now, reasons.Deleted)
	next := p.l.Join(p.now, throttle.Request{UID: "a"})
	require.NotSame(t, old, next)
	old.Wait(p.now)
	old.StartExempt(p.now)
	old.KeepAlive(p.now)
	holder.End(p.now, reasons.Ready)
	old.StopWaiting(p.now)
	old.End(p.now, reasons.Deleted)
	old.Unreserve(p.now)
	state, _ := next.Status()
	require.Equal(t, throttle.Waiting, state, "no process waits for it")
	require.True(t, next.TryStart(p.now).Granted)
	old.End(p.now, reasons.Failed)
	state, _ = next.Status()
	require.Equal(t, throttle.Starting, state)
}

// Thousands of pods come and go. The limiter remembers only the last ones that ended.
func TestEndedPodsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	p := newPlay(t, throttle.Settings{MaxConcurrent: 3, StartTimeout: time.Minute}, nil)
	p.l.SetPolicies(p.now, map[string]throttle.GroupLimits{"p": {Starting: throttle.Bound{Pods: new(int64(2))}}})
	for i := range 3000 {
		uid := fmt.Sprint(i)
		ticket := p.l.Join(p.now, throttle.Request{UID: uid, Flow: uid, Groups: []throttle.Membership{{Key: throttle.GroupKey{Policy: "p", Group: uid}}}})
		ticket.Wait(p.now)
		if i%3 > 0 {
			ticket.End(p.now, reasons.Deleted)
		}
		p.l.Finished(p.now, uid)
		p.now = p.now.Add(time.Minute)
		p.l.Advance(p.now)
		p.l.Finished(p.now, uid)
		p.l.Drain()
	}
	p.now = p.now.Add(time.Hour)
	p.l.Advance(p.now)
	s := p.l.Snapshot(p.now)
	require.Empty(t, s.Waiting)
	require.Empty(t, s.Starting)
	require.Empty(t, p.l.Groups(p.now))
	require.Len(t, p.l.Recent(), 256)
	require.Nil(t, p.l.Lookup("1"))
}

// The calls come in any order and with any values. The limiter keeps working, and what it shows is consistent. It
// does not ask again and again to be called at once. When the limits end, every waiting pod starts.
func TestAfterAnyCallsAllPodsStartInTheEnd(t *testing.T) {
	t.Parallel()
	for seed := range uint64(15) {
		rng := rand.New(rand.NewPCG(seed, 33))
		now := epoch
		l := throttle.New(now, throttle.Settings{MaxConcurrent: 2})
		tickets := []*throttle.Ticket{l.Join(now, throttle.Request{UID: "0"})}
		for range 600 {
			randomCall(rng, l, &now, &tickets)
			requireConsistent(t, l, now)
		}
		for _, ticket := range tickets {
			ticket.Wait(now)
		}
		l.SetPolicies(now, nil)
		l.SetFrozen(now, false)
		l.Configure(now, throttle.Settings{})
		require.Empty(t, l.Snapshot(now).Waiting, "seed %d", seed)
		require.True(t, l.Advance(now.Add(time.Hour)).IsZero(), "seed %d: nothing is left to do", seed)
	}
}

func randomCall(rng *rand.Rand, l *throttle.Limiter, now *time.Time, tickets *[]*throttle.Ticket) {
	amount := func() int64 { return []int64{-1, 0, 1, 500, 1 << 62}[rng.IntN(5)] }
	short := func() time.Duration { return time.Duration(rng.IntN(90)-5) * time.Second }
	uid := fmt.Sprint(rng.IntN(25))
	groups := []throttle.Membership{{
		Key:      throttle.GroupKey{Policy: fmt.Sprint(rng.IntN(3)), Group: fmt.Sprint(rng.IntN(2))},
		Requests: throttle.Amounts{"cpu": amount()}, Bypass: rng.IntN(9) == 0,
	}}[:rng.IntN(2)]
	r := throttle.Request{
		UID: uid, Flow: fmt.Sprint(rng.IntN(3)), Priority: int32(rng.IntN(3) - 1), Repeats: rng.IntN(9) - 1,
		Arrived: now.Add(-short()), MaxWait: short(), Groups: groups,
	}
	ticket := (*tickets)[rng.IntN(len(*tickets))]
	switch rng.IntN(20) {
	case 0, 1, 2:
		*tickets = append(*tickets, l.Join(*now, r))
	case 3:
		*tickets = append(*tickets, l.Adopt(*now, r, now.Add(-short())))
	case 4, 5:
		ticket.Wait(*now)
	case 6:
		ticket.StopWaiting(*now)
	case 7:
		ticket.TryStart(*now)
	case 8:
		ticket.Reserve(*now, short(), throttle.RetriedSoon)
		if rng.IntN(2) == 0 {
			ticket.Prepare(*now, rng.IntN(2) == 0)
		}
	case 9:
		ticket.Unreserve(*now)
	case 10:
		ticket.DeadlineReached(*now)
	case 11:
		ticket.StartExempt(*now)
	case 12:
		ticket.End(*now, []reasons.Reason{reasons.Ready, reasons.Exited, reasons.Deleted}[rng.IntN(3)])
	case 13:
		l.Lookup(uid).SetStalled(*now, now.Add(-short()))
	case 14:
		l.SetGroups(*now, throttle.PodGroups{UID: uid, Groups: groups, Running: rng.IntN(2) == 0, Ready: rng.IntN(2) == 0})
	case 15:
		l.Finished(*now, uid)
	case 16:
		n := int64(rng.IntN(3) - 1)
		claims := map[bool]*throttle.Claims{true: {}}
		l.SetPolicies(*now, map[string]throttle.GroupLimits{
			"0": {Starting: throttle.Bound{Pods: &n}, Pacer: throttle.Pacer{MaxStagger: 3, Multiplier: -1}},
			"1": {Running: throttle.Bound{Requests: throttle.Amounts{"cpu": amount()}}, Claims: claims[n > 0]},
		})
		l.SetClaims(*now, throttle.GroupKey{Policy: "1"}, rng.IntN(4)-2)
	case 17:
		s := throttle.Settings{MaxConcurrent: rng.IntN(4) - 1, FillEvery: short(), Burst: rng.IntN(3) - 1, MaxWait: short(), StartTimeout: short(), MaxPulling: rng.IntN(3), NoProgressAfter: short()}
		if rng.IntN(3) == 0 {
			s.Adaptive = &adaptive.Settings{Cores: rng.IntN(3)}
		}
		s.Signals[throttle.SignalLoad] = throttle.SignalLimit{Max: float64(rng.IntN(5)), Increment: float64(rng.IntN(3) - 1)}
		l.Configure(*now, s)
		if l.SetFrozen(*now, true); rng.IntN(4) > 0 {
			l.SetFrozen(*now, false)
		}
	case 18:
		var s throttle.Signals
		s[throttle.SignalLoad] = throttle.Reading{Value: float64(rng.IntN(9)), From: now.Add(-short()), To: now.Add(-short())}
		l.Observe(*now, s)
	default:
		*now = now.Add(short()) // sometimes the clock goes back
		l.Advance(*now)
	}
}

// requireConsistent compares the views of the limiter with each other.
func requireConsistent(t *testing.T, l *throttle.Limiter, now time.Time) {
	t.Helper()
	s := l.Snapshot(now)
	seen := map[string]bool{}
	for _, list := range [][]throttle.TicketView{s.Waiting, s.Starting} {
		for _, v := range list {
			require.False(t, seen[v.UID], "%s appears twice", v.UID)
			seen[v.UID] = true
			again, ok := l.View(now, v.UID)
			require.True(t, ok)
			require.Equal(t, v, again)
			require.GreaterOrEqual(t, v.WaitLeft, time.Duration(0))
		}
	}
	for _, g := range l.Groups(now) {
		require.GreaterOrEqual(t, g.Running.Pods, int64(g.Ready))
		require.GreaterOrEqual(t, g.Wants, 0)
		for _, amount := range g.Running.Requests {
			require.Positive(t, amount)
		}
	}
	if next := l.Advance(now); !next.IsZero() {
		require.True(t, next.After(now), "Advance asks to be called at once")
	}
}
