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

// observe lets starts of the given duration end: so many that others of an unknown kind take at most twelve times as long.
func (n *node) observe(d time.Duration) {
	for range 3 {
		n.joinAndWait("observed")
		n.pass(d)
		n.end("observed", reasons.Ready)
	}
}

// renewHolder lets the start that holds the slot begin anew: it has taken no time yet.
func (n *node) renewHolder() {
	n.end("holder", reasons.Deleted)
	n.joinAndWait("holder")
}

// observeThree lets starts end, so that beside a start that begins now, three pods get a place in the gate for each slot.
func (n *node) observeThree() { n.observe(2100 * time.Millisecond) } // 3 * 12 * 2.1 s is less than waitable, and 4 * 12 * 2.1 s is more

func TestOnlyFreeSlotsArePromisedBeforeAnythingWasObserved(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 3})
	require.Equal(t, 3, n.reserve("pod", 20))
	d := n.join("late").Reserve(n.now, waitable, RetriedSoon)
	require.False(t, d.Admitted)
	require.Equal(t, Held{Reason: reasons.GateFull, Measured: 20, Threshold: 3, NoneEnded: true}, d.Held)
	require.Equal(t, 20, d.Ahead)
	n.pass(returnsWithin)
	n.joinAndWait("a", "b", "c")
	n.pass(time.Hour) // they outlast each bound, and end
	require.Zero(t, n.l.Snapshot(n.now).Starting)
}

// A start of a kind that is known takes at most twelve times the mean of those that ended.
func TestAPlaceIsForAPodWhoseTurnComesInTimeEvenIfStartsBecomeTenTimesSlower(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 2})
	n.observe(time.Second)
	n.joinAndWait("a", "b")
	require.Equal(t, 16, n.reserve("pod", 60), "2 slots * 8 starts of 12 s in 100 s")
}

// Two of the longest say more than twelve times the mean.
func TestAPlaceAllowsForTwiceTheLongestStart(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1})
	for range 5 {
		n.observe(time.Second)
	}
	n.observe(time.Second)
	n.joinAndWait("long")
	n.pass(30 * time.Second)
	n.end("long", reasons.Ready)
	n.joinAndWait("holder")
	require.Equal(t, 1, n.reserve("pod", 9), "turns after 60 and 120 s; twelve times the mean is 31 s")
}

// Of kinds that were not seen, the next may take much longer than those that were.
func TestAPlaceAllowsForAnUnknownKind(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1})
	join := func(uid, kind string) *Ticket {
		return n.l.Join(n.now, Request{UID: uid, Profile: Profile{Kind: kind}})
	}
	ends := func(uid, kind string) {
		join(uid, kind).Wait(n.now)
		n.pass(time.Second)
		n.end(uid, reasons.Ready)
	}
	places := func(kind string) (up int) {
		join("holder", "a").Wait(n.now)
		for i := range 20 {
			up += oneIf(join(fmt.Sprint(kind, i), kind).Reserve(n.now, waitable, RetriedSoon).Admitted)
		}
		for i := range 20 {
			n.end(fmt.Sprint(kind, i), reasons.Deleted)
		}
		n.end("holder", reasons.Deleted)
		return up
	}
	for range 5 {
		ends("first", "a")
	}
	require.Equal(t, 8, places("a"), "starts of 12 s")
	require.Equal(t, 2, places("z"), "after one of 12 s starts of 50 s: 100/(1*2) times the mean")
	ends("second", "b")
	require.Equal(t, 6, places("z"), "after one of 12 s starts of 16.7 s: 100/(2*3) times the mean")
}

// A refusal costs such a pod as much as a place that runs out.
func TestARestartGetsAPlaceIfItsTurnIsExpectedInTime(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 2})
	n.observe(5 * time.Second)
	n.joinAndWait("a", "b")
	up := 0
	for i := range 60 {
		up += oneIf(n.join(fmt.Sprintf("pod-%02d", i)).Reserve(n.now, waitable, RetriedLate).Admitted)
	}
	require.Equal(t, 20, up, "2 slots * 50 s / 5 s")
	require.False(t, n.join("late").Reserve(n.now, waitable, RetriedSoon).Admitted, "for it, 2 slots * 100 s / (12 * 5 s)")
}

func TestRoomCountsTheFreeSlots(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 4})
	n.observe(4 * time.Minute)
	require.Equal(t, 4, n.reserve("pod", 30), "starts are slow, but four slots are free")
}

// A start that takes more than twice as long as those that ended may take a hundred times as long as until now, and so
// may those of its kind that begin later.
func TestAStartThatHasNotEndedTakesTheRoom(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 2, StartTimeout: time.Hour})
	n.observe(time.Second)
	n.joinAndWait("slow")
	n.pass(2 * time.Second)
	require.Equal(t, 17, n.reserve("fast", 60), "9 in the free slot, 8 in that which is busy for 10 s")
	n.pass(arrivalGrace)
	require.Equal(t, 1, n.reserve("later", 10), "the slot that is free")
}

func TestNoPlaceIsLeftBehindALongStart(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1, StartTimeout: time.Hour})
	n.observe(10 * time.Minute)
	n.joinAndWait("holder")
	require.Zero(t, n.reserve("pod", 5))
	n.end("holder", reasons.Deleted)
	require.Equal(t, 1, n.reserve("late", 5), "the slot is free")
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

// A full gate does not hold a pod that has a reservation, but the rate does.
func TestAPromiseIsKeptButTheRateHolds(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1})
	promised := n.join("promised")
	require.True(t, promised.Reserve(n.now, waitable, RetriedSoon).Admitted)
	require.True(t, n.l.Join(n.now, Request{UID: "urgent", Priority: 5}).TryStart(n.now).Admitted)
	n.pass(arrivalGrace - time.Millisecond)
	require.True(t, promised.Reserve(n.now, waitable, RetriedSoon).Admitted)
	n.pass(arrivalGrace)
	require.Equal(t, reasons.GateFull, promised.Reserve(n.now, waitable, RetriedSoon).Reason)

	n = newNode(t, Settings{FillEvery: 10 * time.Minute, MaxWait: time.Hour})
	promised = n.join("promised")
	require.True(t, promised.Reserve(n.now, waitable, RetriedSoon).Admitted)
	require.True(t, n.l.Join(n.now, Request{UID: "urgent", Priority: 5}).TryStart(n.now).Admitted)
	require.Equal(t, reasons.Rate, promised.Reserve(n.now, waitable, RetriedSoon).Reason)
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
	n.observeThree()
	n.joinAndWait("holder")
	require.Equal(t, 3, n.reserve("pod", 5))
	n.pass(arrivalGrace - time.Millisecond)
	n.renewHolder()
	require.Zero(t, n.reserve("late", 5))
	n.pass(time.Millisecond)
	require.Positive(t, n.reserve("later", 5))
}

func TestAReservationCountsWhileItsPodWaits(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1})
	n.observeThree()
	n.joinAndWait("holder", "a", "b", "c")
	require.Zero(t, n.reserve("late", 5))
	n.end("c", reasons.Deleted)
	require.Equal(t, 1, n.reserve("late", 5))
}

// Pods behind that have a place keep one that comes later from it: they were promised a turn. It gets the next place.
func TestAPlaceThatWasGivenIsKept(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1})
	n.observeThree()
	n.joinAndWait("holder")
	early := n.join("early")
	n.pass(100 * time.Millisecond)
	require.Equal(t, 3, n.reserve("pod", 9))
	require.False(t, early.Reserve(n.now, waitable, RetriedSoon).Admitted)
	n.end("pod-00", reasons.Deleted)
	require.True(t, early.Reserve(n.now, waitable, RetriedSoon).Admitted)
}

// The turn of an earlier pod would come in time, but that of a pod behind it that has a place would not.
func TestAnEarlierPodBreaksNoPromise(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1})
	n.observeThree()
	n.joinAndWait("holder")
	early, behind := n.join("early"), n.join("behind")
	require.True(t, behind.Reserve(n.now, 40*time.Second, RetriedSoon).Admitted, "its turn comes after 25 s")
	require.False(t, early.Reserve(n.now, waitable, RetriedSoon).Admitted, "that of the other would come after 50 s")
	behind.Unreserve(n.now)
	require.True(t, early.Reserve(n.now, waitable, RetriedSoon).Admitted)
}

// A pod of a higher priority gets a place in any case, if those of its own priority or higher leave it one.
func TestNoPlaceIsKeptFromAHigherPriority(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1})
	n.observeThree()
	n.joinAndWait("holder")
	require.Equal(t, 3, n.reserve("pod", 9))
	up := 0
	for i := range 9 {
		up += oneIf(n.l.Join(n.now, Request{UID: fmt.Sprint("urgent-", i), Priority: 1}).Reserve(n.now, waitable, RetriedSoon).Admitted)
	}
	require.Equal(t, 3, up)
}

// First starts go before restarts.
func TestRestartsKeepNoFirstStartOutOfTheRoom(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1})
	n.observeThree()
	n.joinAndWait("holder")
	reserve := func(r Request) bool { return n.l.Join(n.now, r).Reserve(n.now, waitable, RetriedSoon).Admitted }
	for i := range 3 {
		require.True(t, reserve(Request{UID: fmt.Sprint("restart-", i), Repeats: 1}))
	}
	require.False(t, reserve(Request{UID: "restart", Repeats: 1, Arrived: t0.Add(-time.Minute)}))
	for i := range 3 {
		require.True(t, reserve(Request{UID: fmt.Sprint("first-", i)}))
	}
	require.False(t, reserve(Request{UID: "first"}))
}

// Containers that ran before fill the gate more than others may.
func TestContainersThatRanBeforeKeepNoPodOfHigherPriorityOut(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 2})
	n.observe(5 * time.Second)
	n.joinAndWait("a", "b")
	for i := range 20 {
		require.True(t, n.join(fmt.Sprintf("pod-%02d", i)).Reserve(n.now, waitable, RetriedLate).Admitted)
	}
	up := 0
	for i := range 40 {
		up += oneIf(n.l.Join(n.now, Request{UID: fmt.Sprint("urgent-", i), Priority: 1}).Reserve(n.now, waitable, RetriedSoon).Admitted)
	}
	require.Equal(t, 2, up, "2 slots * 100 s / (12 * 5 s)")
}

func TestUnreserveGivesTheRoomBackAndKeepsThePlace(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1})
	n.observeThree()
	n.joinAndWait("holder")
	require.Equal(t, 3, n.reserve("pod", 4))
	n.l.Lookup("pod-00").Unreserve(n.now)
	require.True(t, n.l.Lookup("pod-03").Reserve(n.now, waitable, RetriedSoon).Admitted)
	n.requireWaiting("pod-00", "pod-01", "pod-02", "pod-03")
}

func TestAPodThatKubeletCannotMakeGivesTheRoomBack(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1})
	n.observeThree()
	n.joinAndWait("holder")
	require.Equal(t, 3, n.reserve("pod", 4))
	n.l.Lookup("pod-00").Prepare(n.now, true)
	require.False(t, n.l.Lookup("pod-03").Reserve(n.now, waitable, RetriedSoon).Admitted)
	n.l.Lookup("pod-00").Prepare(n.now, false)
	require.True(t, n.l.Lookup("pod-03").Reserve(n.now, waitable, RetriedSoon).Admitted)
}

func TestALaterRefusalGivesTheReservationBack(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1})
	n.observeThree()
	n.joinAndWait("holder")
	require.Equal(t, 3, n.reserve("pod", 3))
	urgent := func(uid string) bool {
		return n.l.Join(n.now, Request{UID: uid, Priority: 1}).Reserve(n.now, waitable, RetriedSoon).Admitted
	}
	require.True(t, urgent("a") && urgent("b") && urgent("c"))
	n.pass(arrivalGrace)
	n.renewHolder()
	require.True(t, urgent("a") && urgent("b") && urgent("c"))
	n.l.Lookup("pod-00").Wait(n.now)
	pod := n.l.Lookup("pod-01")
	require.Equal(t, Held{Reason: reasons.GateFull, Measured: 4, Threshold: 3}, pod.Reserve(n.now, waitable, RetriedSoon).Held)
	require.False(t, pod.occupies(n.now))
}

func TestAStartThatDoesNotWaitAlwaysGetsAReservation(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1})
	a := n.joinAndWait("a")
	require.Zero(t, n.reserve("pod", 9))
	require.Equal(t, Decision{Admitted: true, Reason: reasons.WithinLimits}, a.Reserve(n.now, waitable, RetriedSoon))
	a.End(n.now, reasons.Ready)
	require.Equal(t, Decision{Admitted: true, Reason: reasons.Ready}, a.Reserve(n.now, waitable, RetriedSoon))
}

// reserveGrouped asks for n new pods of a group. It returns the last answer and the number of reservations.
// The same image may do other work in the next herd.
func TestAnEarlierHerdPromisesTheNextNothing(t *testing.T) {
	t.Parallel()
	const all = 5
	for gap, places := range map[time.Duration]int{9 * time.Second: all, 10 * time.Second: 1} {
		n := newNode(t, Settings{MaxConcurrent: 1})
		n.observe(time.Second)
		n.pass(gap)
		require.Equal(t, places, n.reserve("pod", all), gap)
	}
	n := newNode(t, Settings{MaxConcurrent: 1})
	n.observe(time.Second)
	n.pass(time.Minute)
	n.observe(time.Second)
	require.Equal(t, all, n.reserve("pod", all), "what ended in this herd teaches")
}

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
	n.observe(2100 * time.Millisecond)
	n.grouped("holder", in(t1, nil))
	last, up := n.reserveGrouped("pod", 12, in(t1, nil))
	require.Equal(t, 3, up, "one at a time, 100 s / (12 * 2.1 s)")
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
		"no claims yet":       {GroupLimits{Claims: &Claims{}}, 4},
		"more than may start": {GroupLimits{Starting: Bound{Requests: Amounts{"cpu": 100}}}, 0},
		"none ever":           {GroupLimits{Starting: pods(0)}, 0},
		"too much to run":     {GroupLimits{Running: Bound{Requests: Amounts{"cpu": 100}}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, Settings{MaxConcurrent: 1})
			n.observeThree()
			n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": c.limits})
			_, up := n.reserveGrouped("held", 9, in(t1, Amounts{"cpu": 200}))
			require.Equal(t, c.up, up)
			require.Equal(t, 4, n.reserve("other", 9))
		})
	}
}
