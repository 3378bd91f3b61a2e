package throttle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// stall reports that the pods make no progress from now on.
func (n *node) stall(uids ...string) {
	for _, uid := range uids {
		n.l.Lookup(uid).SetStalled(n.now, n.now)
	}
}

func TestASlotIsLentWhenNoStartMakesProgress(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 2}, "a", "b", "c", "d")
	n.stall("a")
	n.pass(3 * time.Second)
	n.stall("b")
	require.Equal(t, t0.Add(13*time.Second), n.pass(0), "ten seconds after the last start stopped making progress")
	n.pass(10*time.Second - 1)
	n.requireStarting("a", "b")
	n.pass(1)
	n.requireStarting("a", "b", "c")
	n.requireState("c", Starting, reasons.SlotLent)
	s := n.l.Snapshot(n.now)
	require.Equal(t, []int{2, 1}, []int{s.Limit, s.Lent})
	require.Equal(t, Held{Reason: reasons.Concurrency, Measured: 3, Threshold: 3}, s.Held)
	require.Equal(t, t0, s.Starting[0].StalledSince)
	require.Contains(t, n.kinds(), "Starting/SlotLent c")
}

// The starts of a namespace that make no progress leave the pods of others as many slots as there are, and its own none.
func TestSlotsThatAnotherNamespaceHoldsWithoutProgressAreLent(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 2})
	joins := func(flow string, uids ...string) {
		for _, uid := range uids {
			n.l.Join(n.now, Request{UID: uid, Name: flow + "/" + uid, Flow: flow}).Wait(n.now)
		}
	}
	joins("hangs", "a", "b", "c")
	n.stall("a", "b")
	n.pass(time.Second)
	joins("herd", "d", "e", "f", "g")
	n.requireStarting("a", "b")
	require.Equal(t, t0.Add(10*time.Second), n.pass(9*time.Second-1))
	n.pass(1)
	n.requireStarting("a", "b", "d", "e")
	n.requireState("d", Starting, reasons.SlotLent)
	n.end("d", reasons.Ready)
	n.requireStarting("a", "b", "e", "f")
	n.end("e", reasons.Ready)
	n.end("f", reasons.Ready)
	n.requireStarting("a", "b", "g")
	n.requireWaiting("c")
}

func TestAStartWithoutASlotDoesNotPreventALoan(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1}, "a", "b")
	n.join("exempt").StartExempt(n.now)
	n.stall("a")
	n.pass(10 * time.Second)
	n.requireStarting("a", "exempt", "b")
}

func TestALoanSurvivesAChangeOfTheSettings(t *testing.T) {
	t.Parallel()
	for _, cores := range []bool{false, true} {
		s := Settings{MaxConcurrent: 1, CountCores: cores}
		n := newNode(t, s, "a", "b", "c")
		n.stall("a")
		n.pass(10 * time.Second)
		n.requireStarting("a", "b")
		lent := n.l.slots.loan
		require.NotZero(t, lent.size)
		s.MaxPulling = 4
		n.l.Configure(n.now, s)
		require.Equal(t, lent, n.l.slots.loan)
		n.requireStarting("a", "b")
	}
}

func TestNothingIsLentIf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings Settings
		then     func(n *node)
	}{
		"loans are off":     {settings: Settings{MaxConcurrent: 1, NoProgressAfter: -1}},
		"a slot is free":    {settings: Settings{MaxConcurrent: 2}, then: func(n *node) { n.end("b", reasons.Deleted) }},
		"no pod waits":      {settings: Settings{MaxConcurrent: 1}, then: func(n *node) { n.end("b", reasons.Deleted) }},
		"no pod is present": {settings: Settings{MaxConcurrent: 1}, then: func(n *node) { n.l.Lookup("b").StopWaiting(n.now) }},
		"the rate holds":    {settings: Settings{MaxConcurrent: 1, FillEvery: time.Hour}},
		"a pressure holds":  {settings: Settings{MaxConcurrent: 1, Signals: SignalLimits{SignalIOPressure: {Max: 10}}}, then: func(n *node) { n.measure(SignalIOPressure, 11) }},
	} {
		t.Run(name, func(t *testing.T) {
			n := testNode(t, c.settings, "a", "b")
			if c.then != nil {
				c.then(n)
			}
			n.stall("a")
			n.pass(15 * time.Second)
			require.Zero(t, n.l.Snapshot(n.now).Lent)
		})
	}
}

func TestALoanThatHelpsNothingIsDoubled(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, StartTimeout: time.Hour, MaxWait: time.Hour})
	all := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"}
	n.joinAndWait(all...)
	n.stall("a")
	for _, want := range []int{2, 4, 8, 12} { // 1, 2, 4 more, then all waiting pods
		n.pass(10 * time.Second)
		n.requireStarting(all[:want]...)
		n.pass(2 * time.Second)
		n.stall(all[:want]...)
		n.pass(0)
		n.requireStarting(all[:want]...)
		n.pass(-2 * time.Second)
	}
}

func TestALentSlotIsKeptForPodsThatComeBack(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1}, "a", "b")
	c := n.join("c")
	n.stall("a")
	n.pass(10 * time.Second)
	n.stall("b")
	n.joinAndWait("d")
	n.pass(10 * time.Second)
	n.requireStarting("a", "b", "d")
	require.Equal(t, Decision{Granted: true, Reason: reasons.SlotLent}, c.TryStart(n.now))
}

// Any start makes no progress for a moment. A place in the gate is promised for a loan only when that is near.
func TestAMomentWithoutProgressMakesNoPlacesInTheGate(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1}, "a")
	n.stall("a")
	require.Zero(t, n.reserve("pod", 9))
	n.pass(5 * time.Second)
	require.Equal(t, 7, n.reserve("later", 9), "one slot is lent soon, 2 and 4 within half a minute after that")
}

func TestAnExemptPodTakesNoLentSlot(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1}, "a", "b")
	n.join("c")
	n.stall("a")
	n.pass(10 * time.Second)
	n.stall("b")
	n.joinAndWait("d")
	n.pass(10 * time.Second) // two are lent, one is free for c
	n.join("x").StartExempt(n.now)
	v, _ := n.l.View(n.now, "x")
	require.False(t, v.Slot)
}

func TestOverduePodsCountDuringALoan(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, MaxWait: time.Minute, StartTimeout: time.Hour}, "a", "b", "c", "d")
	n.stall("a")
	n.pass(10 * time.Second) // b is lent a slot, and continues to work
	n.pass(50 * time.Second)
	n.requireStarting("a", "b", "c")
	n.requireState("c", Starting, reasons.MaxWait)
	n.pass(time.Minute)
	n.requireStarting("a", "b", "c")
}

// A start over the limit does not take the place of one on a loan that has ended: else the loan would last for as long as
// pods are overdue, with one more start over it.
func TestOverduePodsUseNoLoan(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, MaxWait: time.Minute, StartTimeout: time.Hour})
	n.joinAndWait("a", "b", "c", "d", "e", "f", "g", "h", "i")
	n.stall("a")
	n.pass(10 * time.Second)
	n.stall("b")
	n.pass(10 * time.Second)
	n.requireStarting("a", "b", "c", "d")
	n.pass(40 * time.Second)
	n.requireStarting("a", "b", "c", "d", "e")
	n.requireState("e", Starting, reasons.MaxWait)
	for _, left := range [][]string{{"a", "c", "d", "e"}, {"a", "d", "e"}, {"a", "e"}} {
		n.end(n.l.Snapshot(n.now).Starting[1].UID, reasons.Settled)
		n.requireStarting(left...)
	}
	require.Zero(t, n.l.Snapshot(n.now).Lent)
	n.end("a", reasons.Settled)
	n.requireStarting("e", "f")
}

func TestAHigherLimitTakesTheLoanBack(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1}, "a", "b", "c", "d")
	n.stall("a")
	n.pass(10 * time.Second)
	n.l.Configure(n.now, Settings{MaxConcurrent: 3})
	require.Zero(t, n.l.Snapshot(n.now).Lent)
	n.requireStarting("a", "b", "c")
	n.l.Configure(n.now, Settings{})
	n.requireStarting("a", "b", "c", "d")
}

// Policies are set again, as all are when any of them has changed. The limiter still knows what the loan of a group
// has helped.
func TestALoanToAGroupOutlivesPoliciesThatAreTheSame(t *testing.T) {
	n := testNode(t, Settings{})
	policies := func() map[string]GroupLimits { return map[string]GroupLimits{"t1": {Starting: pods(1)}} }
	n.l.SetPolicies(n.now, policies())
	for _, uid := range []string{"a", "b", "c", "d", "e"} {
		n.grouped(uid, in(t1, nil))
	}
	n.stall("a")
	n.pass(10 * time.Second)
	n.requireStarting("a", "b")
	n.stall("b")
	n.l.SetPolicies(n.now, policies())
	n.pass(10 * time.Second)
	n.requireStarting("a", "b", "c", "d") // the second loan is twice the first
}

// The decision that makes the loan names what else holds the pod.
func TestARefusalDoesNotNameTheLimitBeyondWhichAStartWasLent(t *testing.T) {
	n := testNode(t, Settings{FillEvery: time.Hour})
	n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": {Starting: pods(1)}})
	n.grouped("hangs", in(t1, nil))
	next := n.l.Join(n.now, Request{UID: "next", Groups: in(t1, nil)})
	n.stall("hangs")
	n.now = n.now.Add(10 * time.Second)
	require.Equal(t, reasons.Rate, next.TryStart(n.now).Reason)
}

// A loan of a resource is the amount that the held pod asks for. An end takes back all of it beyond the amount in
// use.
func TestALoanOfAResourceIsTheAmountOfTheHeldPod(t *testing.T) {
	n := testNode(t, Settings{})
	n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": {Starting: Bound{Requests: Amounts{"cpu": 1000}}}})
	n.grouped("a", in(t1, Amounts{"cpu": 800}))
	n.grouped("b", in(t1, Amounts{"cpu": 500}))
	n.grouped("c", in(t1, Amounts{"cpu": 100}))
	n.requireStarting("a")
	n.stall("a")
	n.pass(10 * time.Second)
	n.requireState("b", Starting, reasons.SlotLent)
	n.requireHeld("c", reasons.PolicyStarting, "t1/: 1.3 of 1 cpu, asks for 0.1")
	n.end("a", reasons.Ready)
	n.requireState("c", Starting, reasons.WithinLimits)
}

func TestOnlyAStartUnderWayStalls(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1}, "a")
	n.join("b")
	n.stall("b", "unknown")
	n.join("x").StartExempt(n.now)
	n.stall("x")
	v, _ := n.l.View(n.now, "x")
	require.Equal(t, n.now, v.StalledSince)
	n.l.Lookup("a").SetStalled(n.now, t0.Add(-time.Hour))
	v, _ = n.l.View(n.now, "a")
	require.Equal(t, t0, v.StalledSince, "it does not stall before its admission")
	n.end("a", reasons.Ready)
}

// A start that ended Stuck fills its pacer, but no pod has to wait until it is ready.
func TestAPacerThatIsFullOfStuckPodsIsLentAStart(t *testing.T) {
	n := testNode(t, Settings{StartTimeout: time.Minute})
	n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": {Pacer: Pacer{MinInitial: 1, Multiplier: 1, MaxStagger: 9}}})
	n.grouped("hangs", in(t1, nil))
	n.grouped("waits", in(t1, nil))
	n.pass(time.Minute)
	n.requireState("hangs", Started, reasons.Stuck)
	n.requireHeld("waits", reasons.PolicyPacer, "t1/: 1 of 1 pods")
	n.pass(10 * time.Second)
	n.requireState("waits", Starting, reasons.SlotLent)
}

// A start that lapsed fills its pacer, too, while its app waits for something else.
func TestAPacerThatIsFullOfPodsWhoseAppsWaitIsLentAStart(t *testing.T) {
	n := testNode(t, Settings{StartTimeout: time.Hour})
	n.l.SetPolicies(n.now, map[string]GroupLimits{
		"t1": {Pacer: Pacer{MinInitial: 1, Multiplier: 1, MaxStagger: 9}}, "t2": {Starting: pods(1)},
	})
	t2 := GroupKey{Policy: "t2"}
	both := append(in(t1, nil), in(t2, nil)...)
	n.grouped("lapses", both)
	n.end("lapses", reasons.Lapsed)
	n.grouped("other", in(t2, nil))
	n.grouped("lapses", both)
	n.requireHeld("lapses", reasons.PolicyStarting, "t2/: 1 of 1 pods")
	n.grouped("waits", in(t1, nil))
	n.requireHeld("waits", reasons.PolicyPacer, "t1/: 1 of 1 pods")
	n.pass(10 * time.Second)
	n.requireState("waits", Starting, reasons.SlotLent)
}

// A pod that has no process yet, as in the waiting room, learns that it may have such a slot, and comes for it. One of the
// namespace whose starts hang does not.
func TestAPodComesForASlotOnWhichAnotherNamespaceHangs(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 2})
	of := func(flow, uid string) *Ticket {
		return n.l.Join(n.now, Request{UID: uid, Name: flow + "/" + uid, Flow: flow})
	}
	of("hangs", "a").Wait(n.now)
	of("hangs", "b").Wait(n.now)
	n.stall("a")
	own, next, second := of("hangs", "c"), of("herd", "d"), of("herd", "e")
	waits := func(uid string) time.Duration {
		v, _ := n.l.View(n.now, uid)
		return v.WaitLeft
	}
	n.pass(10*time.Second - 1)
	require.False(t, next.Reserve(n.now, waitable, RetriedSoon).Granted)
	n.pass(30 * time.Second)
	require.Zero(t, waits("d"))
	require.Positive(t, waits("e"))
	require.Positive(t, waits("c"))
	require.False(t, own.Reserve(n.now, waitable, RetriedSoon).Granted)
	require.True(t, next.Reserve(n.now, waitable, RetriedSoon).Granted)
	require.False(t, second.Reserve(n.now, waitable, RetriedSoon).Granted, "one slot, one pod")
	require.Equal(t, Decision{Granted: true, Reason: reasons.SlotLent}, next.TryStart(n.now))
	require.False(t, second.Reserve(n.now, waitable, RetriedSoon).Granted)
}

// Nothing is lent beyond the limit of a group unless a process waits. So a pod of the room may come when the starts of its
// group make no progress: it may be the one for which they wait.
func TestAPodComesForALoanOfItsGroup(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{})
	n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": {Starting: pods(1)}})
	n.grouped("hangs", in(t1, nil))
	next := n.l.Join(n.now, Request{UID: "next", Groups: in(t1, nil)})
	require.False(t, next.Reserve(n.now, waitable, WaitsOn).Granted)
	n.stall("hangs")
	n.pass(5*time.Second - 1)
	require.False(t, next.Reserve(n.now, waitable, WaitsOn).Granted, "any start makes no progress for a moment")
	n.pass(1)
	require.True(t, next.Reserve(n.now, waitable, WaitsOn).Granted)
	require.False(t, n.l.Join(n.now, Request{UID: "second", Groups: in(t1, nil)}).Reserve(n.now, waitable, WaitsOn).Granted)
	n.l.Lookup("hangs").SetStalled(n.now, time.Time{})
	n.pass(5 * time.Second)
	require.True(t, next.Reserve(n.now, waitable, RetriedSoon).Granted, "it asks for its sandbox, and was promised a place")
	require.False(t, next.TryStart(n.now).Granted)
	require.False(t, next.Reserve(n.now, waitable, RetriedSoon).Granted, "its first container can be refused without a crash")
	n.stall("hangs")
	next.Wait(n.now)
	n.pass(10 * time.Second)
	n.requireState("next", Starting, reasons.SlotLent)

	n = newNode(t, Settings{NoProgressAfter: -1})
	n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": {Starting: pods(1)}})
	n.grouped("hangs", in(t1, nil))
	n.stall("hangs")
	n.pass(time.Minute)
	require.False(t, n.l.Join(n.now, Request{UID: "next", Groups: in(t1, nil)}).Reserve(n.now, waitable, WaitsOn).Granted, "no loan comes")
}
