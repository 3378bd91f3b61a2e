package throttle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

func TestAnOverduePodThatIsNextStartsWithinTheLimits(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, MaxWait: time.Minute, StartTimeout: time.Hour}, "holder", "a", "b")
	n.pass(time.Minute)
	n.requireState("a", Starting, reasons.MaxWait)
	n.l.Configure(n.now, Settings{MaxConcurrent: 9, MaxWait: time.Minute, StartTimeout: time.Hour})
	n.requireState("b", Starting, reasons.WithinLimits)
}

func TestNoSlotIsKeptForTheQueueIfAllPodsAreOverdue(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, MaxWait: time.Minute, StartTimeout: time.Hour}, "holder")
	for i, uid := range []string{"first", "old", "urgent"} {
		n.l.Join(n.now, Request{UID: uid, Priority: int32(i / 2), Arrived: t0.Add(time.Duration(i-9) * time.Second)}).Wait(n.now)
	}
	n.pass(51 * time.Second)
	n.requireStarting("holder", "first")
	n.pass(9 * time.Second)
	n.end("holder", reasons.Ready) // no start is above the limit any more, and the next slot is the queue's
	n.requireStarting("first", "old")
}

func TestTheShorterOfTwoMaxWaitsCounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ all, own time.Duration }{
		{all: 0, own: 30 * time.Second},
		{all: time.Minute, own: 30 * time.Second},
		{all: 30 * time.Second, own: time.Hour}, // a tenth of a long activeDeadlineSeconds
	} {
		n := newNode(t, Settings{MaxConcurrent: 1, MaxWait: c.all}, "holder")
		n.l.Join(n.now, Request{UID: "a", MaxWait: c.own}).Wait(n.now)
		n.pass(29 * time.Second)
		n.requireStarting("holder")
		n.pass(time.Second)
		n.requireState("a", Starting, reasons.MaxWait)
	}
}

func TestAPolicyShortensMaxWait(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, MaxWait: 10 * time.Minute, StartTimeout: time.Hour})
	policy := func(most time.Duration) { n.l.SetPolicies(n.now, map[string]GroupLimits{"p": {MaxWait: most}}) }
	policy(4 * time.Minute)
	n.joinAndWait("holder")
	for _, uid := range []string{"bypasses", "selected"} {
		groups := []Membership{{Key: GroupKey{Policy: "p"}, Bypass: uid == "bypasses"}}
		n.l.Join(n.now, Request{UID: uid, Groups: groups}).Wait(n.now)
	}
	require.Equal(t, t0.Add(4*time.Minute), n.pass(0))
	policy(time.Hour)
	require.Equal(t, t0.Add(10*time.Minute), n.pass(0), "it does not make it longer")
	policy(4 * time.Minute)
	n.pass(4 * time.Minute)
	n.requireStarting("holder", "selected")
	n.requireState("selected", Starting, reasons.MaxWait)
}

func TestAShorterMaxWaitIsFollowedAtOnce(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, StartTimeout: time.Hour}, "holder", "a", "b")
	n.pass(time.Minute)

	n.l.Lookup("a").SetPriority(n.now, 0, 30*time.Second)
	n.requireState("a", Starting, reasons.MaxWait)
	n.end("a", reasons.Ready)

	n.l.Configure(n.now, Settings{MaxConcurrent: 1, MaxWait: time.Minute})
	n.requireState("b", Starting, reasons.MaxWait)
}

func TestAProcessThatCanWaitNoLongerIsNotAdmittedOverTheLimit(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1}, "holder")
	a, b := n.joinAndWait("a"), n.joinAndWait("b")
	for ahead, ticket := range []*Ticket{a, b} {
		d := ticket.DeadlineReached(n.now)
		require.Equal(t, Decision{Reason: reasons.GateExpired, Held: Held{Reason: reasons.Concurrency, Measured: 1, Threshold: 1}, Ahead: ahead}, d)
	}
	n.requireStarting("holder")
	n.requireWaiting("a", "b")
	kinds := n.kinds()
	require.Contains(t, kinds, "Waiting/GateExpired a")
	require.Contains(t, kinds, "Waiting/GateExpired b")

	a.StopWaiting(n.now)
	b.StopWaiting(n.now)
	n.end("holder", reasons.Ready)
	require.Equal(t, Decision{Granted: true, Reason: reasons.WithinLimits}, a.DeadlineReached(n.now), "a slot is free")
	require.Equal(t, Decision{Granted: true, Reason: reasons.WithinLimits}, a.DeadlineReached(n.now), "a asks again")
}

// A token has filled, and Advance was not called yet: it is for the pod that waits.
func TestWhateverAsksForAStartTheQueueIsServedFirst(t *testing.T) {
	t.Parallel()
	for name, asks := range map[string]func(n *node, late *Ticket){
		"a try":        func(n *node, late *Ticket) { require.False(t, late.TryStart(n.now).Granted) },
		"a deadline":   func(n *node, late *Ticket) { require.Equal(t, reasons.GateExpired, late.DeadlineReached(n.now).Reason) },
		"an exemption": func(n *node, late *Ticket) { require.True(t, late.StartExempt(n.now)) },
	} {
		n := newNode(t, Settings{FillEvery: time.Minute}, "starter", "waits")
		late := n.join("late")
		n.now = n.now.Add(time.Minute)
		asks(n, late)
		n.requireState("waits", Starting, reasons.WithinLimits)
		v, _ := n.l.View(n.now, "late")
		require.False(t, v.Slot, name)
	}

	n := newNode(t, Settings{FillEvery: time.Minute}, "starter", "a")
	n.now = n.now.Add(time.Minute)
	require.Equal(t, Decision{Granted: true, Reason: reasons.WithinLimits}, n.l.Lookup("a").DeadlineReached(n.now))
}

func TestOverduePodsExceedALoweredLimitOneAtATime(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 3, MaxWait: time.Minute, StartTimeout: time.Hour}, "a", "b", "c", "d", "e")
	n.l.Configure(n.now, Settings{MaxConcurrent: 1, MaxWait: time.Minute, StartTimeout: time.Hour})
	n.pass(2 * time.Minute)
	n.requireStarting("a", "b", "c", "d")
	n.end("a", reasons.Ready)
	n.end("b", reasons.Ready)
	n.requireStarting("c", "d")
	n.end("d", reasons.Ready)
	n.requireStarting("c", "e")
}

func TestAStartThatTakesTooLongIsStuck(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, StartTimeout: time.Minute}, "a", "b")
	n.join("x").StartExempt(n.now)
	require.Equal(t, t0.Add(time.Minute), n.pass(time.Minute-1))
	n.requireStarting("a", "x")
	n.kinds()
	n.pass(1)
	n.requireState("a", Started, reasons.Stuck)
	n.requireState("x", Started, reasons.Stuck)
	require.Equal(t, []string{"Started/Stuck a", "Started/Stuck x", "Starting/WithinLimits b"}, n.kinds())
	n.end("a", reasons.Ready)
	n.requireState("a", Started, reasons.Stuck)
}

func TestATicketWhosePodDoesNotComeBackIsAbandoned(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, StartTimeout: time.Hour, MaxWait: time.Hour}, "holder", "present")
	a, b := n.join("a"), n.join("b")
	n.pass(9 * time.Minute)
	b.TryStart(n.now)
	require.Equal(t, t0.Add(abandonAfter), n.pass(0))
	n.pass(time.Minute)
	n.requireState("a", Gone, reasons.Abandoned)
	require.True(t, decided(a))
	n.requireWaiting("present", "b")
	n.pass(9 * time.Minute)
	n.requireWaiting("present")
	require.Equal(t, t0.Add(time.Hour), n.pass(0))
}

// For a caller that has found the limits wrong.
func TestAStartWhateverTheLimitsSay(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, FillEvery: time.Hour}, "holder", "a")
	n.requireStarting("holder")
	n.l.SetFrozen(n.now, true)
	require.True(t, n.l.StartAnyway(n.now, "a", reasons.LastResort))
	n.requireState("a", Starting, reasons.LastResort)
	n.requireStarting("holder", "a")
	require.False(t, n.l.StartAnyway(n.now, "a", reasons.LastResort), "it starts already")
	require.False(t, n.l.StartAnyway(n.now, "unknown", reasons.LastResort))
	n.end("a", reasons.Ready)
	n.requireState("a", Started, reasons.Ready)
}
