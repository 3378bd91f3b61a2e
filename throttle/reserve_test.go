package throttle

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

const waitable = 100 * time.Second

// reserve asks for n new pods and counts the reservations.
func (n *node) reserve(prefix string, pods int) (up int) {
	for i := range pods {
		if n.join(fmt.Sprintf("%s-%02d", prefix, i)).Reserve(n.now, waitable, RetriedSoon).Admitted {
			up++
		}
	}
	return up
}

// observe lets starts of the given duration end.
func (n *node) observe(d time.Duration) {
	n.joinAndWait("observed")
	n.pass(d)
	n.end("observed", reasons.Ready)
}

func TestRoomBeforeAnythingWasObservedIsTwiceTheLimitPlusOne(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 3})
	require.Equal(t, 7, n.reserve("pod", 20))
	d := n.join("late").Reserve(n.now, waitable, RetriedSoon)
	require.False(t, d.Admitted)
	require.Equal(t, reasons.GateFull, d.Reason)
	require.Equal(t, Held{Reason: reasons.GateFull, Measured: 20, Threshold: 7}, d.Held)
	require.Equal(t, 20, d.Ahead)
}

func TestAFewPodsAllGetAReservation(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 2})
	n.observe(10 * time.Second)
	n.joinAndWait("a", "b") // no slot is free
	require.Equal(t, 6, n.reserve("pod", 30), "25 s of work for 2 slots, and one more")
}

func TestTheRoomForAFewIsThePaceForHalfTheTime(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 2})
	n.observe(10 * time.Second)
	n.joinAndWait("a", "b")
	up := 0
	for i := range 5 {
		if n.join(fmt.Sprint(i)).Reserve(n.now, 30*time.Second, RetriedSoon).Admitted {
			up++
		}
	}
	require.Equal(t, 3, up, "2 slots * 15 s / 10 s")
}

func TestOfManyPodsAFewGetAReservationInCaseOfASlowdown(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 2})
	n.observe(time.Second)
	n.joinAndWait("a", "b")
	for i := range 60 { // they come, and no pod can wait: all but one are refused
		n.join(fmt.Sprintf("pod-%02d", i)).Reserve(n.now, 0, RetriedSoon)
	}
	require.Equal(t, 16, n.reserve("pod", 60), "2 slots * 100 s / (12 * 1 s)")
}

// A slot that stays empty until kubelet's back-off is over costs more than waits that expire.
func TestNoRoomIsKeptForASlowdownIfARefusalIsRetriedLate(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 2})
	n.observe(5 * time.Second)
	n.joinAndWait("a", "b")
	for i := range 60 {
		n.join(fmt.Sprintf("pod-%02d", i)).Reserve(n.now, 0, RetriedLate)
	}
	up := 0
	for i := range 60 {
		up += oneIf(n.join(fmt.Sprintf("pod-%02d", i)).Reserve(n.now, waitable, RetriedLate).Admitted)
	}
	require.Equal(t, 20, up, "2 slots * 50 s / 5 s")
	require.False(t, n.join("pod-03").Reserve(n.now, waitable, RetriedSoon).Admitted, "for it, 2 slots * 100 s / (12 * 5 s)")
}

func TestEachSlotHasAReservationForAnySpeedOfStarts(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 3})
	n.observe(12 * time.Second)
	n.joinAndWait("a", "b", "c")
	for i := range 60 {
		n.join(fmt.Sprintf("pod-%02d", i)).Reserve(n.now, 0, RetriedSoon)
	}
	require.Equal(t, 3, n.reserve("pod", 60))
}

func TestRoomCountsTheFreeSlots(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 4})
	n.observe(4 * time.Minute)
	require.Equal(t, 4, n.reserve("pod", 30), "starts are slow, but four slots are free")
}

func TestRoomShrinksWithTheAgeOfAnUnfinishedStart(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1})
	n.observe(time.Second)
	n.joinAndWait("slow")
	require.Equal(t, 26, n.reserve("fast", 60))
	n.pass(25 * time.Second)
	require.Equal(t, 2, n.reserve("later", 10), "50 s / 25 s; the earlier reservations have expired")
}

func TestRoomIsNeverZero(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1, StartTimeout: time.Hour})
	n.observe(10 * time.Minute)
	n.joinAndWait("holder")
	require.Equal(t, 1, n.reserve("pod", 5))
}

func TestTheRoomOfTheRateIsItsTokensAndFills(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{FillEvery: 10 * time.Second, Burst: 3})
	require.Equal(t, 8, n.reserve("pod", 30), "3 tokens + 50 s / 10 s")
	n = newNode(t, Settings{MaxConcurrent: 10, FillEvery: 10 * time.Second})
	require.Equal(t, 6, n.reserve("pod", 30), "the least of the limits, also before anything was observed")
}

// Its wait in the gate would end before that, and it would start over the rate.
func TestNoPodGetsAReservationLongBeforeTheNextToken(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{FillEvery: 10 * time.Minute, MaxWait: time.Hour})
	n.joinAndWait("first")
	d := n.join("next").Reserve(n.now, waitable, RetriedSoon)
	require.False(t, d.Admitted)
	require.Equal(t, reasons.Rate, d.Reason)
	require.InDelta(t, 600, d.Held.Measured, 1)
	n.pass(10*time.Minute - waitable + time.Second)
	next := n.l.Lookup("next")
	require.True(t, next.Reserve(n.now, waitable, RetriedSoon).Admitted)
	next.Wait(n.now)
	n.pass(waitable)
	n.requireState("next", Starting, reasons.WithinLimits)
}

// A full gate holds no pod that left the waiting room, but the rate does.
func TestAFullGateDoesNotHideTheRate(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{FillEvery: 10 * time.Minute, MaxWait: time.Hour})
	require.True(t, n.join("first").Reserve(n.now, waitable, RetriedSoon).Admitted)
	room := n.join("room")
	require.True(t, n.l.Join(n.now, Request{UID: "urgent", Priority: 5}).TryStart(n.now).Admitted)
	require.Equal(t, reasons.Rate, room.Reserve(n.now, waitable, NotIfFull).Reason)
}

func TestWithoutLimitsAllPodsGetAReservation(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{})
	require.Equal(t, 500, n.reserve("pod", 500))
}

func TestStartsOfNoDurationLeaveTheRoomOpen(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1})
	n.observe(0)
	require.Equal(t, 100, n.reserve("pod", 100))
}

func TestAReservationWhosePodDoesNotComeExpires(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1})
	require.Equal(t, 3, n.reserve("pod", 5))
	n.pass(arrivalGrace - time.Millisecond)
	require.Zero(t, n.reserve("late", 5))
	n.pass(time.Millisecond)
	require.Zero(t, n.reserve("later", 5), "the refused pods come back before them")
	require.True(t, n.l.Lookup("pod-03").Reserve(n.now, waitable, RetriedSoon).Admitted)
	require.True(t, n.l.Lookup("late-00").Reserve(n.now, waitable, RetriedSoon).Admitted)
	require.False(t, n.l.Lookup("late-01").Reserve(n.now, waitable, RetriedSoon).Admitted, "pod-04 comes back before it, too")
}

func TestAReservationCountsWhileItsPodWaits(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1})
	n.joinAndWait("holder", "a", "b", "c")
	n.pass(arrivalGrace + 5*time.Second)
	require.Zero(t, n.reserve("late", 5))
	n.l.Lookup("c").StopWaiting(n.now)
	require.Zero(t, n.reserve("late", 5), "the waiting pod comes back")
	n.end("c", reasons.Deleted)
	require.Equal(t, 1, n.reserve("late", 5))
}

func TestPodsBehindDoNotTakeTheRoomOfAnEarlierPod(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1})
	n.joinAndWait("holder")
	early := n.join("early")
	n.pass(time.Second)
	require.Equal(t, 3, n.reserve("pod", 9))
	require.True(t, early.Reserve(n.now, waitable, RetriedSoon).Admitted, "only pods behind it fill the quota")
	require.False(t, n.join("last").Reserve(n.now, waitable, RetriedSoon).Admitted)
}

func TestAtMostTwiceTheRoomIsReserved(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1}) // the quota is 3
	n.joinAndWait("holder")
	up := 0
	for i := range 10 { // each is before all earlier ones in the queue
		r := Request{UID: fmt.Sprint(i), Arrived: t0.Add(-time.Duration(i) * time.Second)}
		if n.l.Join(n.now, r).Reserve(n.now, waitable, RetriedSoon).Admitted {
			up++
		}
	}
	require.Equal(t, 6, up)
}

// Restarts that came while each was next fill the quota twice. First starts have a quota of their own then.
func TestRestartsKeepNoFirstStartOutOfTheRoom(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1}) // the quota is 3
	n.joinAndWait("holder")
	reserve := func(r Request) bool { return n.l.Join(n.now, r).Reserve(n.now, waitable, RetriedSoon).Admitted }
	for i := range 6 {
		require.True(t, reserve(Request{UID: fmt.Sprint("restart-", i), Repeats: 1, Arrived: t0.Add(-time.Duration(i) * time.Second)}))
	}
	require.False(t, reserve(Request{UID: "restart", Repeats: 1, Arrived: t0.Add(-time.Minute)}))
	up := 0
	for i := range 10 { // each is before all earlier ones in the queue
		up += oneIf(reserve(Request{UID: fmt.Sprint("first-", i), Arrived: t0.Add(-time.Duration(i) * time.Second)}))
	}
	require.Equal(t, 6, up, "four times the quota in all")
	require.False(t, reserve(Request{UID: "urgent", Priority: 1}))
}

// Containers that ran before fill the gate by a quota that is greater than that of others.
func TestContainersThatRanBeforeKeepNoPodOfHigherPriorityOut(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 2})
	n.observe(5 * time.Second)
	n.joinAndWait("a", "b")
	for i := range 40 {
		n.join(fmt.Sprintf("pod-%02d", i)).Reserve(n.now, waitable, RetriedLate)
	}
	up := 0
	for i := range 40 {
		up += oneIf(n.l.Lookup(fmt.Sprintf("pod-%02d", i)).Reserve(n.now, waitable, RetriedLate).Admitted)
	}
	require.Equal(t, 20, up, "2 slots * 50 s / 5 s")
	for i := range 40 { // each is before all earlier ones in the queue
		r := Request{UID: fmt.Sprint("earlier-", i), Arrived: t0.Add(-time.Duration(i) * time.Second)}
		up += oneIf(n.l.Join(n.now, r).Reserve(n.now, waitable, RetriedLate).Admitted)
	}
	require.Equal(t, 40, up, "twice their quota")
	up = 0
	for i := range 40 {
		up += oneIf(n.l.Join(n.now, Request{UID: fmt.Sprint("urgent-", i), Priority: 1}).Reserve(n.now, waitable, RetriedSoon).Admitted)
	}
	require.Equal(t, 3, up, "2 slots * 100 s / (12 * 5 s)")
	require.False(t, n.join("pod-40").Reserve(n.now, waitable, RetriedSoon).Admitted, "those before it count")
}

func TestUnreserveGivesTheRoomBackAndKeepsThePlace(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1})
	n.joinAndWait("holder")
	require.Equal(t, 3, n.reserve("pod", 4))
	n.l.Lookup("pod-00").Unreserve(n.now)
	require.True(t, n.l.Lookup("pod-03").Reserve(n.now, waitable, RetriedSoon).Admitted)
	n.requireWaiting("pod-00", "pod-01", "pod-02", "pod-03")
}

func TestAPodThatKubeletCannotMakeGivesTheRoomBack(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1})
	n.joinAndWait("holder")
	require.Equal(t, 3, n.reserve("pod", 4))
	n.l.Lookup("pod-00").Prepare(n.now, true)
	require.False(t, n.l.Lookup("pod-03").Reserve(n.now, waitable, RetriedSoon).Admitted)
	n.l.Lookup("pod-00").Prepare(n.now, false)
	require.True(t, n.l.Lookup("pod-03").Reserve(n.now, waitable, RetriedSoon).Admitted)
}

func TestALaterRefusalGivesTheReservationBack(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1}) // the quota is 3
	n.joinAndWait("holder")
	require.Equal(t, 3, n.reserve("pod", 3))
	urgent := func(uid string) bool {
		return n.l.Join(n.now, Request{UID: uid, Priority: 1}).Reserve(n.now, waitable, RetriedSoon).Admitted
	}
	require.True(t, urgent("a") && urgent("b") && urgent("c"))
	d := n.l.Lookup("pod-00").Reserve(n.now, waitable, RetriedSoon)
	require.False(t, d.Admitted, "three other pods are before it now")
	d = n.l.Lookup("pod-01").Reserve(n.now, waitable, RetriedSoon)
	require.Equal(t, Held{Reason: reasons.GateFull, Measured: 4, Threshold: 3}, d.Held, "pod-00 comes back before this pod")
}

func TestAStartThatDoesNotWaitAlwaysGetsAReservation(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1})
	a := n.joinAndWait("a")
	require.Equal(t, 3, n.reserve("pod", 9))
	require.Equal(t, Decision{Admitted: true, Reason: reasons.WithinLimits}, a.Reserve(n.now, waitable, RetriedSoon))
	a.End(n.now, reasons.Ready)
	require.Equal(t, Decision{Admitted: true, Reason: reasons.Ready}, a.Reserve(n.now, waitable, RetriedSoon))
}

// reserveGrouped asks for n new pods of a group. It returns the last answer and the number of reservations.
func (n *node) reserveGrouped(prefix string, pods int, groups []Membership) (last Decision, up int) {
	for i := range pods {
		t := n.l.Join(n.now, Request{UID: fmt.Sprintf("%s-%02d", prefix, i), Groups: groups})
		if last = t.Reserve(n.now, waitable, RetriedSoon); last.Admitted {
			up++
		}
	}
	return last, up
}

// As many pods of a group get a reservation as the group can let start while they wait.
func TestAReservationForeseesTheStartsOfItsGroup(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 10})
	n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": {Starting: pods(1)}})
	n.observe(10 * time.Second)
	n.grouped("holder", in(t1, nil))
	last, up := n.reserveGrouped("pod", 12, in(t1, nil))
	require.Equal(t, 5, up, "one at a time, 50 s / 10 s")
	require.Equal(t, Held{Reason: reasons.PolicyStarting, Policy: t1, Measured: 1, Threshold: 1}, last.Held)
	require.Equal(t, 15, n.reserve("other", 15), "they take nothing from other pods")

	n.pass(50 * time.Second)
	_, up = n.reserveGrouped("later", 12, in(t1, nil))
	require.Equal(t, 1, up, "the holder may take another 50 s; the earlier reservations have expired")
}

// The pods of a group without claims get as many reservations as the quota of the node allows, so that they are present
// when claims come. The pods of a group that never lets them start get none. Neither group takes anything from others.
func TestAReservationIsForPodsWhoseGroupMayLetThemStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits GroupLimits
		up     int
	}{
		"no claims yet":       {GroupLimits{Claims: &Claims{}}, 3},
		"more than may start": {GroupLimits{Starting: Bound{Requests: Amounts{"cpu": 100}}}, 0},
		"none ever":           {GroupLimits{Starting: pods(0)}, 0},
		"too much to run":     {GroupLimits{Running: Bound{Requests: Amounts{"cpu": 100}}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, Settings{MaxConcurrent: 1})
			n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": c.limits})
			_, up := n.reserveGrouped("held", 9, in(t1, Amounts{"cpu": 200}))
			require.Equal(t, c.up, up)
			require.Equal(t, 3, n.reserve("other", 9))
		})
	}
}
