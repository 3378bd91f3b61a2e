package throttle

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// The order is by priority, repeats and arrival. A pod cannot arrive in the future, and more than five repeats count as five.
func TestTheOrderOfTheQueue(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1}, "holder")
	for _, r := range []Request{
		{UID: "often", Repeats: 5},
		{UID: "more-often", Repeats: 80},
		{UID: "once", Repeats: 1, Arrived: t0.Add(-2 * time.Minute)},
		{UID: "twice", Repeats: 2},
		{UID: "first"},
		{UID: "first-by-mistake", Repeats: -1},
		{UID: "came-before", Arrived: t0.Add(-time.Minute)},
		{UID: "from-the-future", Arrived: t0.Add(time.Hour)},
		{UID: "urgent", Priority: 10, Repeats: 9},
		{UID: "unimportant", Priority: -1, Arrived: t0.Add(-5 * time.Minute)},
	} {
		n.l.Join(n.now, r).Wait(n.now)
	}
	n.requireWaiting("urgent", "came-before", "first", "first-by-mistake", "from-the-future", "once", "twice", "often", "more-often", "unimportant")
	v, _ := n.l.View(n.now, "more-often")
	require.Equal(t, 80, v.Repeats)
}

// Flows with equal numbers of starts in flight go by arrival in each round, for any number of flows.
func TestInEachRoundTheFirstToArriveGoesFirst(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1}, "holder")
	var firsts, seconds []string
	for i := range 40 {
		first, second := fmt.Sprint("first-", i), fmt.Sprint("second-", i)
		for _, uid := range []string{first, second} {
			n.l.Join(n.now, Request{UID: uid, Flow: fmt.Sprint(i)}).Wait(n.now)
		}
		firsts, seconds = append(firsts, first), append(seconds, second)
	}
	n.requireWaiting(slices.Concat(firsts, seconds)...)
}

// Times with and without a monotonic reading have no common order once the wall clock is set. So all arrivals must be
// on one clock.
func TestArrivalOfAnEarlierDaemonIsOnTheClockOfThisOne(t *testing.T) {
	t.Parallel()
	now := time.Now()
	require.Contains(t, now.String(), " m=")
	l := New(now, Settings{MaxConcurrent: 1})
	l.Join(now, Request{UID: "a", Arrived: time.UnixMilli(now.UnixMilli() - 5000)})
	l.Adopt(now, Request{UID: "b"}, time.UnixMilli(now.UnixMilli()-5000))
	for uid, at := range map[string]func(TicketView) time.Time{
		"a": func(v TicketView) time.Time { return v.Arrived },
		"b": func(v TicketView) time.Time { return v.Admitted },
	} {
		v, ok := l.View(now, uid)
		require.True(t, ok)
		require.Contains(t, at(v).String(), " m=", uid)
		require.WithinDuration(t, now.Add(-5*time.Second), at(v), time.Millisecond)
	}
}

func TestAPodHasOneTicketAtATime(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1})
	first := n.join("a")
	require.Same(t, first, n.join("a"), "Waiting")
	first.Wait(n.now)
	require.Same(t, first, n.join("a"), "Starting")
	first.End(n.now, reasons.Ready)
	require.Same(t, first, n.l.Lookup("a"), "an ended ticket is remembered")
	second := n.join("a")
	require.NotSame(t, first, second, "a new start of the pod has a new ticket")
	require.Same(t, second, n.l.Lookup("a"))

	for range 3 * endedKept { // the pod's older ticket is forgotten, not this one
		n.join("other").End(n.now, reasons.Deleted)
	}
	require.Same(t, second, n.l.Lookup("a"))
}

func TestSetPriorityMovesAWaitingTicket(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1}, "holder", "a", "b")
	absent := n.join("c")
	n.l.Lookup("b").SetPriority(n.now, 5, 0)
	n.l.Lookup("c").SetPriority(n.now, 9, 0)
	n.l.Lookup("unknown").SetPriority(n.now, 9, 0)
	n.l.Lookup("holder").SetPriority(n.now, 9, 0)
	n.requireWaiting("c", "b", "a")
	n.end("holder", reasons.Ready)
	n.requireStarting("b")
	state, _ := absent.Status()
	require.Equal(t, Waiting, state, "a priority does not make it present")
	v, _ := n.l.View(n.now, "b")
	require.Equal(t, int32(5), v.Priority)
}

func TestAnEarlierArrivalMovesAWaitingTicket(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, MaxWait: time.Hour}, "holder", "a", "b")
	n.pass(10 * time.Second)
	n.l.Join(n.now, Request{UID: "b", Arrived: t0.Add(-time.Minute)})
	n.l.Join(n.now, Request{UID: "b", Arrived: t0.Add(time.Second)}) // a later arrival changes nothing
	n.requireWaiting("b", "a")
	require.Equal(t, t0.Add(Settings{}.WithDefaults().StartTimeout), n.pass(0))
	n.l.Join(n.now, Request{UID: "a", Arrived: t0.Add(-2 * time.Hour)})
	n.pass(0)
	n.requireState("a", Starting, reasons.MaxWait)
}

// A namespace is full of pods that hang and use CPU, so no slot is lent. Their priority is the highest. The pods of another
// namespace get slots as if those had the same priority, before and after all of them are overdue.
func TestPodsOfHighPriorityThatHangDoNotHoldOtherNamespaces(t *testing.T) {
	t.Parallel()
	for name, maxWait := range map[string]time.Duration{"in turn": time.Hour, "overdue": 10 * time.Minute, "overdue at once": time.Minute} {
		t.Run(name, func(t *testing.T) {
			n := testNode(t, Settings{MaxConcurrent: 2, MaxWait: maxWait, NoProgressAfter: -1})
			for i := range 100 {
				n.l.Join(n.now, Request{UID: fmt.Sprint("hangs-", i), Flow: "a", Priority: 2_000_001_000}).Wait(n.now)
			}
			var others []*Ticket
			for i := range 5 {
				others = append(others, n.l.Join(n.now.Add(time.Second), Request{UID: fmt.Sprint("other-", i), Flow: "b", Priority: -5}))
				others[i].Wait(n.now.Add(time.Second))
			}
			began := map[string]time.Duration{}
			for n.now.Sub(t0) < 12*time.Hour && len(began) < len(others) {
				n.pass(time.Second)
				for _, other := range others {
					switch state, _ := other.Status(); {
					case state != Starting:
					case began[other.UID()] == 0:
						began[other.UID()] = n.now.Sub(t0)
					case n.now.Sub(t0)-began[other.UID()] >= 20*time.Second:
						other.End(n.now, reasons.Ready)
					}
				}
			}
			t.Log(began)
			require.Equal(t, 5*time.Minute, began["other-0"], "the first two that hang are stuck")
			require.LessOrEqual(t, began["other-4"], 11*time.Minute, "every second overdue start is the one that is overdue for longest")
		})
	}
}
