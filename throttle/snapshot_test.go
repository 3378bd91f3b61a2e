package throttle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

func TestSnapshotShowsAllThatWaitsAndStarts(t *testing.T) {
	t.Parallel()
	s := Settings{MaxConcurrent: 1, FillEvery: time.Second, Burst: 5}
	n := newNode(t, s, "a")
	n.pass(20 * time.Second)
	n.joinAndWait("b")
	n.join("absent")
	n.join("x").StartExempt(n.now)
	n.pass(time.Second)

	held := Held{Reason: reasons.Concurrency, Measured: 1, Threshold: 1}
	now, interval := t0.Add(21*time.Second), 42*time.Second // twice the age of a
	require.Equal(t, Snapshot{
		Settings: s.WithDefaults(), Held: held, Interval: interval, Limit: 1,
		Waiting: []TicketView{
			{
				UID: "b", Name: "ns/b", State: Waiting, Reason: reasons.Concurrency, Held: held,
				Present: true, Arrived: t0.Add(20 * time.Second), Since: t0.Add(20 * time.Second), WaitLeft: interval - 21*time.Second,
			},
			{
				UID: "absent", Name: "ns/absent", State: Waiting, Reason: reasons.Concurrency, Held: held,
				Ahead: 1, Arrived: t0.Add(20 * time.Second), Since: t0.Add(20 * time.Second), WaitLeft: 2*interval - 21*time.Second,
			},
		},
		Starting: []TicketView{
			{UID: "a", Name: "ns/a", State: Starting, Reason: reasons.WithinLimits, Admission: reasons.WithinLimits, Present: true, Slot: true, Arrived: t0, Since: t0, Admitted: t0},
			{
				UID: "x", Name: "ns/x", State: Starting, Reason: reasons.Exempt, Admission: reasons.Exempt,
				Arrived: t0.Add(20 * time.Second), Since: t0.Add(20 * time.Second), Admitted: t0.Add(20 * time.Second),
			},
		},
	}, n.l.Snapshot(now))

	n.end("a", reasons.Ready)
	n.end("b", reasons.Settled)
	v, ok := n.l.View(now, "b")
	require.True(t, ok)
	require.Equal(t, TicketView{
		UID: "b", Name: "ns/b", State: Started, Reason: reasons.Settled, Admission: reasons.WithinLimits, Present: true,
		Arrived: t0.Add(20 * time.Second), Since: t0.Add(20 * time.Second), Admitted: now, Ended: now,
	}, v)
	require.Equal(t, []string{"a", "b"}, uidsOf(n.l.Recent()))
	_, ok = n.l.View(now, "unknown")
	require.False(t, ok)
}

// kubelet pulls a pod's images after its sandbox exists. No limit holds the pod meanwhile, and that time is no wait.
func TestAPodThatKubeletPreparesDoesNotWait(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, MaxWait: time.Minute}, "holder")
	a := n.join("a")
	n.pass(10 * time.Second)
	a.Prepare(n.now, true)
	n.pass(2 * time.Minute)
	a.Prepare(n.now, true) // the sandbox is reported again
	v, _ := n.l.View(n.now, "a")
	require.Equal(t, Held{Reason: reasons.Preparing}, v.Held)
	require.Equal(t, reasons.Preparing, v.Reason)
	require.Equal(t, 10*time.Second, n.now.Sub(v.Since), "it waited before")
	require.False(t, v.Overdue)

	require.False(t, a.TryStart(n.now).Granted)
	a.Prepare(n.now, true)
	n.pass(49 * time.Second)
	v, _ = n.l.View(n.now, "a")
	require.Equal(t, reasons.Concurrency, v.Reason, "it has asked for a container")
	require.Equal(t, 59*time.Second, n.now.Sub(v.Since))
	require.False(t, v.Overdue)
	n.pass(time.Second)
	v, _ = n.l.View(n.now, "a")
	require.True(t, v.Overdue)

	a.Unreserve(n.now) // its sandbox is gone
	n.pass(time.Second)
	v, _ = n.l.View(n.now, "a")
	require.Equal(t, reasons.Concurrency, v.Reason)
	a.Prepare(n.now, true)
	n.pass(time.Second)
	require.True(t, a.StartExempt(n.now))
	v, _ = n.l.View(n.now, "a")
	require.Equal(t, 61*time.Second, v.Admitted.Sub(v.Since))
}

// An image that cannot be pulled may be missing for days. Its pod does not push back the others, and does not keep
// signals sampled.
func TestAPodThatKubeletCannotMakeIsBeforeNoOther(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 2, CountCores: true, MaxWait: time.Hour, StartTimeout: time.Hour})
	n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": {Running: pods(1)}})
	n.joinAndWait("holder")
	bad := n.l.Join(n.now, Request{UID: "bad", Profile: Profile{Cost: peak(3)}, Groups: in(t1, nil)})
	for _, uid := range []string{"light", "lighter"} {
		n.l.Join(n.now, Request{UID: uid, Profile: Profile{Cost: peak(0.25)}})
	}
	n.l.Join(n.now, Request{UID: "grouped", Groups: in(t1, nil)})
	ahead := func() (ahead []int) {
		for _, uid := range []string{"light", "lighter", "grouped"} {
			v, _ := n.l.View(n.now, uid)
			ahead = append(ahead, v.Ahead)
		}
		return ahead
	}
	holds := func() GroupKey {
		v, _ := n.l.View(n.now, "grouped")
		return v.Held.Policy
	}
	require.Equal(t, []int{1, 2, 3}, ahead())
	require.Equal(t, t1, holds())
	bad.Prepare(n.now, true)
	require.Equal(t, []int{1, 2, 3}, ahead())
	bad.Prepare(n.now, false)
	require.Equal(t, []int{0, 1, 2}, ahead())
	require.Empty(t, holds())
	for _, uid := range []string{"light", "lighter", "grouped"} {
		n.end(uid, reasons.Deleted)
	}
	n.l.Changed()
	require.Equal(t, "starting", n.busyWith())
	bad.KeepAlive(n.now)
	require.Equal(t, "starting", n.busyWith())
	require.False(t, n.l.Changed())

	require.False(t, bad.TryStart(n.now).Granted, "its image is there at last")
	require.Equal(t, "waiting", n.busyWith())
	require.True(t, n.l.Changed())
}

func TestPaceIsAGuessUntilAStartEnded(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 3})
	s := n.l.Snapshot(n.now)
	require.Equal(t, []any{unknownStart / 3, false}, []any{s.Interval, s.IntervalObserved})
	n.observe(time.Minute) // the next displace these
	n.observe(6 * time.Second)
	s = n.l.Snapshot(n.now)
	require.Equal(t, []any{2 * time.Second, true}, []any{s.Interval, s.IntervalObserved})

	for range len(history{}.last) {
		n.joinAndWait("deleted") // its slot came free, but not because the pod started
		n.end("deleted", reasons.Deleted)
	}
	require.Equal(t, 2*time.Second, n.l.Snapshot(n.now).Interval)

	n.l.Configure(n.now, Settings{MaxConcurrent: 3, FillEvery: 5 * time.Second})
	require.Equal(t, 5*time.Second, n.l.Snapshot(n.now).Interval, "the slower of both limits")
	n.l.Configure(n.now, Settings{})
	require.Zero(t, n.l.Snapshot(n.now).Interval)
}

func TestASnapshotSaysWhenALimitOpensByItself(t *testing.T) {
	n := testNode(t, Settings{FillEvery: time.Minute}, "first")
	n.pass(n.l.Snapshot(n.now).Held.Until.Sub(n.now))
	require.Zero(t, n.l.Snapshot(n.now).Held)

	n = newNode(t, Settings{MaxConcurrent: 1, FillEvery: time.Minute}, "first")
	require.Equal(t, reasons.Concurrency, n.l.Snapshot(n.now).Held.Reason)
	require.Zero(t, n.l.Snapshot(n.now).Held.Until, "time alone does not open the limit")
}

func TestAnEstimateSaysWhatItRestsOn(t *testing.T) {
	t.Parallel()
	expected := func(n *node, uid string) []any {
		v, ok := n.l.View(n.now, uid)
		require.True(t, ok)
		return []any{v.WaitLeft, n.l.Snapshot(n.now).IntervalObserved}
	}
	n := newNode(t, Settings{MaxConcurrent: 2}, "a", "b", "c")
	require.Equal(t, []any{unknownStart, false}, expected(n, "c"))
	n.pass(20 * time.Second)
	require.Equal(t, []any{20 * time.Second, false}, expected(n, "c"), "as long again as the oldest")
	n.end("a", reasons.Ready)
	n.joinAndWait("d", "e")
	require.Equal(t, []any{20 * time.Second, true}, expected(n, "e"), "the second of two")

	n = newNode(t, Settings{FillEvery: 7 * time.Second}, "a", "b")
	n.joinAndWait("c")
	require.Equal(t, []any{7 * time.Second, true}, expected(n, "b"), "the rate is set")
	n.pass(3 * time.Second)
	require.Equal(t, []any{4 * time.Second, true}, expected(n, "b"), "until the next token")
	require.Equal(t, []any{11 * time.Second, true}, expected(n, "c"), "and one more")

	n = newNode(t, Settings{Signals: SignalLimits{SignalCPU: {Max: 80, Increment: 50}}})
	n.measure(SignalCPU, 20)
	n.joinAndWait("a", "b", "c", "d", "e")
	n.requireStarting("a", "b")
	n.pass(4 * time.Second)
	n.measure(SignalCPU, 50)
	n.requireStarting("a", "b", "c")
	require.Equal(t, []any{4 * time.Second, true}, expected(n, "d"), "one start in the four seconds in which pods waited")
	n.end("d", reasons.Deleted)
	n.end("e", reasons.Deleted)
	n.pass(time.Minute)
	n.measure(SignalCPU, 99)
	n.joinAndWait("f")
	require.Equal(t, []any{unknownStart, false}, expected(n, "f"), "the starts of an earlier crowd do not count")
}

// A start that has run for three minutes takes as long again, whatever those took that ended.
func TestNoTurnIsExpectedEarlierThanTheStartsUnderWayAllow(t *testing.T) {
	t.Parallel()
	for name, ended := range map[string]bool{"nothing has ended": false, "others took a second": true} {
		n := newNode(t, Settings{MaxConcurrent: 2, StartTimeout: time.Hour, NoProgressAfter: -1})
		if ended {
			n.observe(time.Second)
		}
		n.joinAndWait("a", "b", "next", "last")
		for range 18 {
			n.pass(10 * time.Second)
			age := n.now.Sub(n.l.slots.inFlight[0].admitted)
			s := n.l.Snapshot(n.now)
			require.Equal(t, ended, s.IntervalObserved, name)
			require.GreaterOrEqual(t, s.Interval, age/2, name)
			for _, v := range s.Waiting {
				require.GreaterOrEqual(t, age+v.WaitLeft, max(age, time.Second), name)
				require.True(t, age < unknownStart || v.WaitLeft >= age, "%s: %s is expected after %s, and starts have run for %s", name, v.UID, v.WaitLeft, age)
			}
		}
	}
}

func TestAFreeSlotWaitsForAPodThatIsAway(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1}, "a")
	n.join("b")
	n.end("a", reasons.Ready)
	v, _ := n.l.View(n.now, "b")
	require.Equal(t, reasons.NotPresent, v.Reason)
	require.Zero(t, v.WaitLeft)

	n.join("c")
	v, _ = n.l.View(n.now, "c")
	require.Equal(t, Held{Reason: reasons.Queued, Measured: 1}, v.HeldBack().Held)
	require.Equal(t, reasons.Queued, v.HeldBack().Reason)
	n.joinAndWait("d") // b and c are away
	v, _ = n.l.View(n.now, "c")
	require.Equal(t, v, v.HeldBack(), "a limit holds it")
}
