package throttle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Closing a channel twice panics, so the test takes every way out twice.
func TestDecidedIsClosedExactlyOnce(t *testing.T) {
	t.Parallel()
	for name, decide := range map[string]func(n *node, a *Ticket){
		"admitted":    func(n *node, _ *Ticket) { n.end("holder", reasons.Ready) },
		"tried":       func(n *node, a *Ticket) { n.end("holder", reasons.Ready); a.TryStart(n.now) },
		"exempt":      func(n *node, a *Ticket) { a.StartExempt(n.now) },
		"found":       func(n *node, _ *Ticket) { n.l.Adopt(n.now, Request{UID: "a"}, n.now) },
		"waited":      func(n *node, _ *Ticket) { n.pass(time.Hour) },
		"deleted":     func(n *node, a *Ticket) { a.End(n.now, reasons.Deleted) },
		"sandboxGone": func(n *node, a *Ticket) { a.End(n.now, reasons.SandboxGone) },
	} {
		t.Run(name, func(t *testing.T) {
			n := testNode(t, Settings{MaxConcurrent: 1, StartTimeout: 2 * time.Hour}, "holder")
			a := n.joinAndWait("a")
			require.False(t, decided(a))
			decide(n, a)
			require.True(t, decided(a))
			decide(n, a)
			a.StartExempt(n.now)
			a.DeadlineReached(n.now)
			a.Wait(n.now)
			a.End(n.now, reasons.Ready)
			a.End(n.now, reasons.Deleted)
			a.StopWaiting(n.now)
			a.StopWaiting(n.now)
		})
	}
}

// A start that failed says nothing about the pace.
func TestAReasonSaysWhereAnEndLeads(t *testing.T) {
	t.Parallel()
	for reason, want := range map[reasons.Reason]struct {
		state State
		tells bool
	}{
		reasons.Ready: {Started, true}, reasons.Settled: {Started, true}, reasons.Inferred: {Started, true}, reasons.Completed: {Started, true},
		reasons.Failed: {Started, false}, reasons.CrashLoop: {Started, false}, reasons.Stuck: {Started, false},
		reasons.SandboxGone: {Gone, false}, reasons.Deleted: {Gone, false}, reasons.Abandoned: {Gone, false},
	} {
		n := newNode(t, Settings{MaxConcurrent: 1}, "a", "b")
		n.pass(3 * time.Second)
		n.end("a", reason)
		n.requireState("a", want.state, reason)
		require.Equal(t, want.tells, n.l.Snapshot(n.now).IntervalObserved, reason)
		n.requireStarting("b")
		n.join("c")
		n.end("c", reason)
		n.requireState("c", Gone, reason)
	}
}

func TestAnExemptStartWithoutSlotTakesNothing(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, FillEvery: time.Hour, Burst: 5}, "holder", "waits")
	n.join("x").StartExempt(n.now)
	v, _ := n.l.View(n.now, "x")
	require.False(t, v.Slot)
	require.Equal(t, []any{Starting, reasons.Exempt}, []any{v.State, v.Reason})
	require.InDelta(t, 4, n.l.limits.bucket.TokensAt(n.now), 1e-9)
	n.end("x", reasons.Ready)
	n.requireStarting("holder")
	n.requireWaiting("waits")
	require.Zero(t, n.l.slots.took.n, "a start without a slot says nothing about the interval")
}

func TestAStartFoundUnderWayHoldsASlotOverTheLimit(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, FillEvery: time.Hour, StartTimeout: time.Minute})
	a := n.joinAndWait("waits", "a", "b")
	require.Same(t, a, n.l.Lookup("b"))
	b := n.l.Adopt(n.now, Request{UID: "b"}, t0.Add(-20*time.Second))
	require.Same(t, a, b)
	n.l.Adopt(n.now, Request{UID: "c"}, t0.Add(-40*time.Second))
	n.requireStarting("waits", "b", "c")
	n.requireState("c", Starting, reasons.Adopted)

	require.Same(t, b, n.l.Adopt(n.now, Request{UID: "b"}, n.now), "the second call returns the same ticket")
	v, _ := n.l.View(n.now, "b")
	require.Equal(t, t0.Add(-20*time.Second), v.Admitted)

	require.Equal(t, t0.Add(20*time.Second), n.pass(0), "its time counts from its begin")
	n.pass(20 * time.Second)
	n.requireState("c", Started, reasons.Stuck)
	n.end("b", reasons.Ready)
	require.Zero(t, n.l.slots.took.n, "its begin was not observed, so its duration does not count")
	c := n.l.Adopt(n.now, Request{UID: "c"}, time.Time{})
	v, _ = n.l.View(n.now, "c")
	require.Equal(t, n.now, v.Admitted, "without a time it begins now")
	require.Equal(t, "c", c.UID())
}

func TestTryStartLeavesThePodAbsent(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1}, "holder")
	a := n.join("a")
	d := a.TryStart(n.now)
	require.Equal(t, Decision{
		Reason: reasons.Concurrency,
		Held:   Held{Reason: reasons.Concurrency, Measured: 1, Threshold: 1},
	}, d)
	n.end("holder", reasons.Ready)
	n.requireWaiting("a")

	// A process that waits there and a process that tries count as two.
	a.Wait(n.now)
	n.requireStarting("a")
	require.Equal(t, Decision{Granted: true, Reason: reasons.WithinLimits}, a.TryStart(n.now))
	require.Equal(t, "ns/a", a.Name())
}

func TestTheTicketOfAnExpectedPodIsNotAbandoned(t *testing.T) {
	t.Parallel()
	l := New(t0, Settings{MaxConcurrent: 1})
	pulls := l.Join(t0, Request{UID: "pulls"})
	gone := l.Join(t0, Request{UID: "gone"})
	pulls.KeepAlive(t0.Add(abandonAfter - time.Second))
	l.Advance(t0.Add(abandonAfter))
	state, _ := pulls.Status()
	require.Equal(t, Waiting, state)
	_, reason := gone.Status()
	require.Equal(t, reasons.Abandoned, reason)
	pulls.KeepAlive(t0) // a late caller: the time does not go back
	l.Advance(t0.Add(abandonAfter + time.Minute))
	state, _ = pulls.Status()
	require.Equal(t, Waiting, state)
}

func TestATicketThatYieldsLetsTheNextStartUntilItIsOverdue(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, MaxWait: time.Minute, StartTimeout: time.Hour})
	n.joinAndWait("holder", "yields", "next")
	yields := n.l.Lookup("yields")
	yields.Yield(n.now, true)
	n.end("holder", reasons.Ready)
	n.requireState("next", Starting, reasons.WithinLimits)
	n.end("next", reasons.Ready)
	n.requireWaiting("yields")
	n.pass(time.Minute)
	n.requireState("yields", Starting, reasons.WithinLimits)
}

func TestATicketThatYieldsKeepsItsPlaceAmongThoseThatRun(t *testing.T) {
	n := testNode(t, Settings{})
	n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": {Running: pods(1)}})
	n.grouped("holder", in(t1, nil))
	n.grouped("yields", in(t1, nil))
	n.l.Lookup("yields").Yield(n.now, true)
	n.grouped("next", in(t1, nil))
	n.end("holder", reasons.Completed)
	n.l.Finished(n.now, "holder")
	n.requireWaiting("yields", "next")
	n.l.Lookup("yields").Yield(n.now, false)
	n.requireWaiting("next")
}

func TestATicketThatYieldsNoLongerStartsAtOnce(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]func(n *node, t *Ticket){
		"told so":           func(n *node, t *Ticket) { t.Yield(n.now, false) },
		"its process comes": func(n *node, t *Ticket) { t.StopWaiting(n.now); t.Wait(n.now) },
	} {
		n := newNode(t, Settings{MaxConcurrent: 1}, "holder", "yields")
		yields := n.l.Lookup("yields")
		yields.Yield(n.now, true)
		n.end("holder", reasons.Ready)
		n.requireWaiting("yields")
		ends(n, yields)
		require.Len(t, n.l.Snapshot(n.now).Starting, 1, name)
	}
}
