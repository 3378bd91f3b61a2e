package throttle

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// peak is the cost of a start that is expected to keep this many cores busy.
func peak(cores float64) *costs.Cost { return &costs.Cost{Count: 3, Peak: costs.Figure{Mean: cores}} }

// joinKnown joins a pod of known cost, with a waiter from now on.
func (n *node) joinKnown(uid string, cost *costs.Cost) {
	n.l.Join(n.now, Request{UID: uid, Name: "ns/" + uid, Profile: Profile{Cost: cost}}).Wait(n.now)
}

func TestCoresAreCountedInPlaceOfPods(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 2, CountCores: true}, "unknown")
	for i := range 5 {
		n.joinKnown(fmt.Sprint("light-", i), peak(0.25))
	}
	n.requireStarting("unknown", "light-0", "light-1", "light-2", "light-3")
	n.requireWaiting("light-4")
	s := n.l.Snapshot(n.now)
	require.Equal(t, Held{Reason: reasons.Concurrency, Measured: 5, Threshold: 5}, s.Held)

	n.end("light-0", reasons.Ready)
	n.requireWaiting()
	n.end("unknown", reasons.Ready)
	require.Equal(t, 5, n.l.Snapshot(n.now).Limit, "four light pods, and one of unknown cost")
}

func TestAStartThatOnlyWaitsCountsALittle(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, CountCores: true})
	for i := range 25 {
		n.joinKnown(fmt.Sprint(i), peak(0))
	}
	require.Len(t, n.l.Snapshot(n.now).Starting, 20)
}

func TestTheLowerOfCoresAndTheAdaptiveLimitCounts(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 2, CountCores: true, Adaptive: &adaptive.Settings{Cores: 8}, StartTimeout: time.Hour})
	n.joinAndWait("a", "b", "c")
	n.requireStarting("a", "b")

	n = newNode(t, Settings{MaxConcurrent: 50, CountCores: true, Adaptive: &adaptive.Settings{Cores: 1, Max: 1}, StartTimeout: time.Hour})
	n.joinAndWait("a", "b", "c")
	n.requireStarting("a")
}

func TestOneOverdueStartAtATimeExceedsTheCores(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 2, CountCores: true, MaxWait: time.Minute, StartTimeout: time.Hour, NoProgressAfter: -1})
	for i := range 10 {
		n.joinAndWait(fmt.Sprint(i))
	}
	n.pass(2 * time.Minute)
	n.joinAndWait("comes", "and", "waits")
	n.requireStarting("0", "1", "2")
	require.Equal(t, Held{Reason: reasons.Concurrency, Measured: 3, Threshold: 2}, n.l.Snapshot(n.now).Held)
	n.end("0", reasons.Ready)
	n.requireStarting("1", "2", "3")

	n = newNode(t, Settings{MaxConcurrent: 2, CountCores: true, StartTimeout: time.Hour})
	n.joinKnown("great", peak(1.5))
	n.joinKnown("light", peak(0.3))
	late := n.l.Join(n.now, Request{UID: "late", Profile: Profile{Cost: peak(0.4)}})
	require.Equal(t, reasons.GateExpired, late.DeadlineReached(n.now).Reason)
	n.end("light", reasons.Ready)
	require.Equal(t, Decision{Granted: true, Reason: reasons.WithinLimits}, late.DeadlineReached(n.now), "it fits into the cores by now")
	n.requireStarting("great", "late")
}

// The next start fits into the cores that are left when it is the turn of one that is overdue and does not.
func TestAnOverdueStartExceedsTheCoresThoughTheNextWouldFit(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 4, CountCores: true, MaxWait: time.Minute})
	for uid, cores := range map[string]float64{"holder": 2.5, "leaves": 1.5} {
		n.joinKnown(uid, peak(cores))
	}
	for i := range 3 {
		n.joinKnown(fmt.Sprint("great-", i), peak(2))
	}
	n.pass(time.Minute - 1)
	for i := range 2 {
		n.l.Join(n.now, Request{UID: fmt.Sprint("light-", i), Priority: 1, Profile: Profile{Cost: peak(0.4)}}).Wait(n.now)
	}
	n.pass(1)
	n.requireState("great-0", Starting, reasons.MaxWait)
	n.end("great-0", reasons.Ready)
	n.end("leaves", reasons.Ready)
	n.requireStarting("holder", "light-0", "great-1")
	n.pass(time.Minute)
	n.requireWaiting("light-1", "great-2")
	n.end("great-1", reasons.Ready)
	n.requireWaiting()
}

func TestCoresAreGivenInTheCurrentOrder(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 2, CountCores: true, FillEvery: time.Minute, StartTimeout: time.Hour, MaxWait: time.Hour})
	n.joinKnown("first", peak(1))
	n.joinKnown("light", peak(0.5))
	n.joinKnown("lighter", peak(0.5))
	n.joinKnown("great", peak(1.5))
	n.l.Lookup("great").SetPriority(n.now, 1, 0)
	n.pass(5 * time.Minute)
	n.requireStarting("first")
	n.l.Lookup("great").SetPriority(n.now, -1, 0)
	n.requireStarting("first", "light")
	n.l.SetProfiles(n.now, map[string]Profile{"lighter": {Cost: peak(0.7)}, "great": {Cost: peak(0.1)}})
	n.l.Lookup("great").SetPriority(n.now, 1, 0)
	n.pass(time.Minute)
	n.requireStarting("first", "light", "great")
}

func TestAllStartsCountTheirCores(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 2, CountCores: true, StartTimeout: time.Hour})
	n.l.Adopt(n.now, Request{UID: "adopted", Profile: Profile{Cost: peak(1.5)}}, n.now)
	n.l.Join(n.now, Request{UID: "exempt", Profile: Profile{Cost: peak(0.4)}}).StartExempt(n.now)
	n.l.Join(n.now, Request{UID: "beyond", Profile: Profile{Cost: peak(1)}}).StartExempt(n.now)
	n.joinKnown("light", peak(0.1))
	n.joinKnown("lighter", peak(0.05))
	require.Equal(t, map[string]bool{"adopted": true, "exempt": true, "beyond": false, "light": true}, n.slotsHeld())
	n.l.Adopt(n.now, Request{UID: "more", Profile: Profile{Cost: peak(1)}}, n.now)
	n.end("light", reasons.Ready)
	n.end("exempt", reasons.Ready)
	n.requireWaiting("lighter")
	n.end("more", reasons.Ready)
	n.requireWaiting()
}

// A start that ended Stuck counts against its flow for some time. After that, another ticket may be next.
func TestTheNextTicketMayChangeWhenAStuckStartIsForgotten(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 2, CountCores: true, StartTimeout: time.Minute, MaxWait: time.Hour})
	join := func(uid, flow string, cores float64) {
		n.l.Join(n.now, Request{UID: uid, Flow: flow, Arrived: t0, Profile: Profile{Cost: peak(cores)}}).Wait(n.now)
	}
	join("hangs", "a", 1)
	n.pass(time.Minute)
	n.requireState("hangs", Started, reasons.Stuck)
	n.pass(time.Second)
	n.l.Join(n.now, Request{UID: "light", Flow: "a", Arrived: t0, Profile: Profile{Cost: peak(0.5)}})
	join("other", "b", 1)
	join("great", "c", 2)
	n.l.Lookup("light").Wait(n.now)
	require.Equal(t, t0.Add(2*time.Minute), n.pass(0))
	n.requireStarting("other")
	n.pass(59 * time.Second)
	n.requireStarting("other", "light")
}

// slotsHeld reports for each start under way whether it holds a slot.
func (n *node) slotsHeld() map[string]bool {
	slots := map[string]bool{}
	for _, v := range n.l.Snapshot(n.now).Starting {
		slots[v.UID] = v.Slot
	}
	return slots
}

func TestASlotIsLentBeyondTheCores(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, CountCores: true, StartTimeout: time.Hour, NoProgressAfter: 10 * time.Second})
	n.joinAndWait("hangs", "b", "c", "d")
	n.l.Lookup("hangs").SetStalled(n.now, n.now)
	n.pass(9 * time.Second)
	n.requireStarting("hangs")
	n.pass(time.Second)
	n.requireState("b", Starting, reasons.SlotLent)
	n.pass(time.Minute)
	n.requireWaiting("c", "d")
	n.end("b", reasons.Ready)
	n.pass(10 * time.Second)
	n.requireStarting("hangs", "c")
}
