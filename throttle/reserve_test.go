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
		if n.join(fmt.Sprintf("%s-%02d", prefix, i)).Reserve(n.now, waitable, RetriedSoon).Granted {
			up++
		}
	}
	return up
}

// observe lets starts of the given duration end, as many as are remembered.
func (n *node) observe(d time.Duration) {
	for range len(history{}.last) {
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

// threeInTime is a StartTimeout with which, beside a start that begins now, three pods get a place in the gate for each slot.
const threeInTime = 26 * time.Second // 3 * 26 s is less than waitable, and 4 * 26 s is more

func TestOnlyFreeSlotsArePromisedBeforeAnythingWasObserved(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 3})
	require.Equal(t, 3, n.reserve("pod", 20))
	d := n.join("late").Reserve(n.now, waitable, RetriedSoon)
	require.False(t, d.Granted)
	require.Equal(t, Held{Reason: reasons.GateFull, Measured: 20, Threshold: 3, NoneEnded: true}, d.Held)
	require.Equal(t, 20, d.Ahead)
	n.pass(comesWithin)
	n.joinAndWait("a", "b", "c")
	n.pass(time.Hour) // they outlast each bound, and end
	require.Zero(t, n.l.Snapshot(n.now).Starting)
}

// A start of a kind that is known takes at most twelve times the mean of those that ended.
func TestAPlaceIsForAPodWhoseTurnComesInTimeEvenIfStartsBecomeTenTimesSlower(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 2})
	n.observe(2 * time.Second)
	n.joinAndWait("a", "b")
	require.Equal(t, 8, n.reserve("pod", 60), "2 slots * 4 starts of 24 s in 100 s")
}

// As many starts that last longer than all that ended as there are slots would take them all. What was seen must make that
// unlikely, so few slots want many starts that ended.
func TestNoPlaceIsPromisedWhereLongerStartsMayTakeAllSlots(t *testing.T) {
	t.Parallel()
	for slots, want := range map[int]map[int]int{ // how many ended: places behind full slots
		1: {0: 0, 1: 0, 97: 0, 99: 1},
		2: {0: 0, 11: 0, 12: 1, 20: 1, 30: 2},
		4: {3: 0, 4: 1, 8: 2},
		8: {1: 0, 2: 1, 4: 3},
	} {
		for ended, places := range want {
			n := newNode(t, Settings{MaxConcurrent: slots})
			for range ended {
				n.joinAndWait("ended")
				n.pass(time.Second)
				n.end("ended", reasons.Ready)
			}
			require.Equal(t, slots, n.reserve("first", slots), "free slots are not in doubt")
			require.Equal(t, places, n.reserve("behind", 20), "%d slots, %d starts ended", slots, ended)
		}
	}
}

// One of the starts under way lasts already longer than all that ended: so may the next.
func TestALongStartMakesOthersLikely(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 4})
	n.observe(time.Second)
	n.joinAndWait("long", "a", "b", "c")
	before := n.reserve("pod", 60)
	for i := range 60 {
		n.end(fmt.Sprintf("pod-%02d", i), reasons.Deleted)
	}
	n.pass(2001 * time.Millisecond)
	for _, uid := range []string{"a", "b", "c"} {
		n.end(uid, reasons.Deleted)
		n.joinAndWait(uid)
	}
	after := n.reserve("pod", 60)
	require.Positive(t, after)
	require.Greater(t, before, after+10)
}

// Two of the longest say more than twelve times the mean.
func TestAPlaceAllowsForTwiceTheLongestStart(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1})
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
	n := testNode(t, Settings{MaxConcurrent: 1})
	join := func(kind string) *Ticket {
		return n.l.Join(n.now, Request{UID: kind, Profile: Profile{Kind: kind}})
	}
	ends := func(kind string) {
		join(kind).Wait(n.now)
		n.pass(time.Second)
		n.end(kind, reasons.Ready)
	}
	takes := func(kind string) time.Duration {
		defer n.end(kind, reasons.Deleted)
		return n.l.admission.forecast(n.now, true, 0).takes(join(kind))
	}
	for range 5 {
		ends("a")
	}
	require.Equal(t, 12*time.Second, takes("a"))
	require.Equal(t, 50*time.Second, takes("z"), "100/(1*2) times the mean")
	ends("b")
	require.InDelta(t, 16.7, takes("z").Seconds(), 0.1, "100/(2*3) times the mean")
	require.Equal(t, []int{5, 1, 2}, []int{n.l.slots.took.comparable("a"), n.l.slots.took.comparable("b"), n.l.slots.took.comparable("z")})
}

// A refusal costs such a pod as much as a place that runs out.
func TestARestartGetsAPlaceIfItsTurnIsExpectedInTime(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 2})
	n.observe(5 * time.Second)
	n.joinAndWait("a", "b")
	up := 0
	for i := range 60 {
		up += oneIf(n.join(fmt.Sprintf("pod-%02d", i)).Reserve(n.now, waitable, RetriedLate).Granted)
	}
	require.Equal(t, 20, up, "2 slots * 50 s / 5 s")
	require.False(t, n.join("late").Reserve(n.now, waitable, RetriedSoon).Granted, "for it, 2 slots * 100 s / (12 * 5 s)")
}

// A start that takes more than twice as long as those that ended may take a hundred times as long as until now, and the
// next ones may be like it.
func TestAStartThatHasNotEndedTakesTheRoom(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 2, StartTimeout: time.Hour})
	n.observe(2 * time.Second)
	n.joinAndWait("slow")
	n.pass(4 * time.Second)
	require.Equal(t, 9, n.reserve("fast", 60), "5 in the free slot, 4 in that which is busy for 20 s")
	n.pass(comesWithin)
	require.Equal(t, 1, n.reserve("later", 10), "the slot that is free")
}

func TestNoPlaceIsLeftBehindALongStart(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, StartTimeout: time.Hour})
	n.observe(10 * time.Minute)
	n.joinAndWait("holder")
	require.Zero(t, n.reserve("pod", 5))
	n.end("holder", reasons.Deleted)
	require.Equal(t, 1, n.reserve("late", 5), "the slot is free")
}

func TestTheRoomOfTheRateIsItsTokensAndFills(t *testing.T) {
	n := testNode(t, Settings{FillEvery: 10 * time.Second, Burst: 3})
	require.Equal(t, 8, n.reserve("pod", 30), "3 tokens + 50 s / 10 s")
	n = newNode(t, Settings{MaxConcurrent: 10, FillEvery: 10 * time.Second})
	require.Equal(t, 6, n.reserve("pod", 30), "the least of the limits, also before anything was observed")
}

// Its wait in the gate would end before that, and it would start over the rate.
func TestNoPodGetsAReservationLongBeforeTheNextToken(t *testing.T) {
	n := testNode(t, Settings{FillEvery: 10 * time.Minute, MaxWait: time.Hour}, "first")
	d := n.join("next").Reserve(n.now, waitable, RetriedSoon)
	require.False(t, d.Granted)
	require.Equal(t, reasons.Rate, d.Reason)
	require.InDelta(t, 600, d.Held.Measured, 1)
	n.pass(10*time.Minute - waitable + time.Second)
	next := n.l.Lookup("next")
	require.True(t, next.Reserve(n.now, waitable, RetriedSoon).Granted)
	next.Wait(n.now)
	n.pass(waitable)
	n.requireState("next", Starting, reasons.WithinLimits)
}

// A full gate does not hold a pod that has a reservation, but the rate does.
func TestAPromiseIsKeptButTheRateHolds(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1})
	promised := n.join("promised")
	require.True(t, promised.Reserve(n.now, waitable, RetriedSoon).Granted)
	require.True(t, n.l.Join(n.now, Request{UID: "urgent", Priority: 5}).TryStart(n.now).Granted)
	n.pass(comesWithin - time.Millisecond)
	require.True(t, promised.Reserve(n.now, waitable, RetriedSoon).Granted)
	n.pass(comesWithin)
	require.Equal(t, reasons.GateFull, promised.Reserve(n.now, waitable, RetriedSoon).Reason)

	n = newNode(t, Settings{FillEvery: 10 * time.Minute, MaxWait: time.Hour})
	promised = n.join("promised")
	require.True(t, promised.Reserve(n.now, waitable, RetriedSoon).Granted)
	require.True(t, n.l.Join(n.now, Request{UID: "urgent", Priority: 5}).TryStart(n.now).Granted)
	require.Equal(t, reasons.Rate, promised.Reserve(n.now, waitable, RetriedSoon).Reason)
}

func TestWithoutLimitsAllPodsGetAReservation(t *testing.T) {
	n := testNode(t, Settings{})
	require.Equal(t, 500, n.reserve("pod", 500))
}

func TestStartsOfNoDurationLeaveTheRoomOpen(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 8})
	n.observe(0)
	require.Equal(t, 100, n.reserve("pod", 100))
}

func TestAReservationWhosePodDoesNotComeExpires(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, StartTimeout: threeInTime})
	n.observe(time.Second)
	n.joinAndWait("holder")
	require.Equal(t, 3, n.reserve("pod", 5))
	n.pass(comesWithin - time.Millisecond)
	n.renewHolder()
	require.Zero(t, n.reserve("late", 5))
	n.pass(time.Millisecond)
	require.Positive(t, n.reserve("later", 5))
}

func TestAReservationCountsWhileItsPodWaits(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, StartTimeout: threeInTime}, "holder", "a", "b", "c")
	require.Zero(t, n.reserve("late", 5))
	n.end("c", reasons.Deleted)
	require.Equal(t, 1, n.reserve("late", 5))
}

// Pods behind that have a place keep one that comes later from it: they were promised a turn. It gets the next place.
func TestAPlaceThatWasGivenIsKept(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, StartTimeout: threeInTime}, "holder")
	early := n.join("early")
	n.pass(100 * time.Millisecond)
	require.Equal(t, 3, n.reserve("pod", 9))
	require.False(t, early.Reserve(n.now, waitable, RetriedSoon).Granted)
	n.end("pod-00", reasons.Deleted)
	require.True(t, early.Reserve(n.now, waitable, RetriedSoon).Granted)
}

// The turn of an earlier pod would come in time, but that of a pod behind it that has a place would not.
func TestAnEarlierPodBreaksNoPromise(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, StartTimeout: threeInTime}, "holder")
	early, behind := n.join("early"), n.join("behind")
	require.True(t, behind.Reserve(n.now, 40*time.Second, RetriedSoon).Granted, "its turn comes after 25 s")
	require.False(t, early.Reserve(n.now, waitable, RetriedSoon).Granted, "that of the other would come after 50 s")
	behind.Unreserve(n.now)
	require.True(t, early.Reserve(n.now, waitable, RetriedSoon).Granted)
}

// A pod of a higher priority gets a place in any case, if those of its own priority or higher leave it one.
func TestNoPlaceIsKeptFromAHigherPriority(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, StartTimeout: threeInTime}, "holder")
	require.Equal(t, 3, n.reserve("pod", 9))
	up := 0
	for i := range 9 {
		up += oneIf(n.l.Join(n.now, Request{UID: fmt.Sprint("urgent-", i), Priority: 1}).Reserve(n.now, waitable, RetriedSoon).Granted)
	}
	require.Equal(t, 3, up)
}

// First starts go before restarts.
func TestRestartsKeepNoFirstStartOutOfTheRoom(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, StartTimeout: threeInTime}, "holder")
	reserve := func(r Request) bool { return n.l.Join(n.now, r).Reserve(n.now, waitable, RetriedSoon).Granted }
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
	n := testNode(t, Settings{MaxConcurrent: 2})
	n.observe(5 * time.Second)
	n.joinAndWait("a", "b")
	for i := range 20 {
		require.True(t, n.join(fmt.Sprintf("pod-%02d", i)).Reserve(n.now, waitable, RetriedLate).Granted)
	}
	up := 0
	for i := range 40 {
		up += oneIf(n.l.Join(n.now, Request{UID: fmt.Sprint("urgent-", i), Priority: 1}).Reserve(n.now, waitable, RetriedSoon).Granted)
	}
	require.Equal(t, 2, up, "2 slots * 100 s / (12 * 5 s)")
}

func TestUnreserveGivesTheRoomBackAndKeepsThePlace(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, StartTimeout: threeInTime}, "holder")
	require.Equal(t, 3, n.reserve("pod", 4))
	n.l.Lookup("pod-00").Unreserve(n.now)
	require.True(t, n.l.Lookup("pod-03").Reserve(n.now, waitable, RetriedSoon).Granted)
	n.requireWaiting("pod-00", "pod-01", "pod-02", "pod-03")
}

func TestAPodThatKubeletCannotMakeGivesTheRoomBack(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, StartTimeout: threeInTime}, "holder")
	require.Equal(t, 3, n.reserve("pod", 4))
	n.l.Lookup("pod-00").Prepare(n.now, true)
	require.False(t, n.l.Lookup("pod-03").Reserve(n.now, waitable, RetriedSoon).Granted)
	n.l.Lookup("pod-00").Prepare(n.now, false)
	require.True(t, n.l.Lookup("pod-03").Reserve(n.now, waitable, RetriedSoon).Granted)
}

func TestALaterRefusalGivesTheReservationBack(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, StartTimeout: threeInTime}, "holder")
	require.Equal(t, 3, n.reserve("pod", 3))
	urgent := func(uid string) bool {
		return n.l.Join(n.now, Request{UID: uid, Priority: 1}).Reserve(n.now, waitable, RetriedSoon).Granted
	}
	require.True(t, urgent("a") && urgent("b") && urgent("c"))
	n.pass(comesWithin)
	n.renewHolder()
	require.True(t, urgent("a") && urgent("b") && urgent("c"))
	n.l.Lookup("pod-00").Wait(n.now)
	pod := n.l.Lookup("pod-01")
	require.Equal(t, Held{Reason: reasons.GateFull, Measured: 4, Threshold: 3, NoneEnded: true}, pod.Reserve(n.now, waitable, RetriedSoon).Held)
	require.False(t, pod.occupies(n.now))
}

func TestAStartThatDoesNotWaitAlwaysGetsAReservation(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1})
	a := n.joinAndWait("a")
	require.Zero(t, n.reserve("pod", 9))
	require.Equal(t, Decision{Granted: true, Reason: reasons.WithinLimits}, a.Reserve(n.now, waitable, RetriedSoon))
	a.End(n.now, reasons.Ready)
	require.Equal(t, Decision{Granted: true, Reason: reasons.Ready}, a.Reserve(n.now, waitable, RetriedSoon))
}

// The same image may do other work in the next herd.
func TestAnEarlierHerdPromisesTheNextNothing(t *testing.T) {
	t.Parallel()
	const all, free = 8, 4
	for gap, places := range map[time.Duration]int{9 * time.Second: all, 10 * time.Second: free} {
		n := newNode(t, Settings{MaxConcurrent: free})
		n.observe(time.Second)
		n.pass(gap)
		require.Equal(t, places, n.reserve("pod", all), gap)
	}
	n := newNode(t, Settings{MaxConcurrent: free})
	n.observe(time.Second)
	n.join("broken").Prepare(n.now, false)
	n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": {Running: pods(0)}})
	n.grouped("held", in(t1, nil))
	n.pass(time.Minute)
	require.Equal(t, free, n.reserve("pod", all), "neither the pod that cannot be made nor the one that is held is of a herd")

	n = newNode(t, Settings{MaxConcurrent: free})
	n.observe(time.Second)
	require.True(t, n.join("exempt").StartExempt(n.now))
	n.l.Adopt(n.now, Request{UID: "adopted"}, n.now)
	n.pass(time.Minute)
	require.Equal(t, free-2, n.reserve("pod", all), "a broken pod that never waited is of no herd, but has a slot")

	n = newNode(t, Settings{MaxConcurrent: free})
	n.observe(time.Second)
	n.pass(time.Minute)
	n.observe(time.Second)
	require.Equal(t, all, n.reserve("pod", all), "what ended in this herd teaches")
}

// reserveGrouped asks for n new pods of a group. It returns the last answer and the number of reservations.
func (n *node) reserveGrouped(prefix string, pods int, groups []Membership) (last Decision, up int) {
	for i := range pods {
		t := n.l.Join(n.now, Request{UID: fmt.Sprintf("%s-%02d", prefix, i), Groups: groups})
		if last = t.Reserve(n.now, waitable, RetriedSoon); last.Granted {
			up++
		}
	}
	return last, up
}

// As many pods of a group get a reservation as the group can let start while they wait.
func TestAReservationForeseesTheStartsOfItsGroup(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 10})
	n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": {Starting: pods(1)}, "t2": {Starting: pods(4)}})
	n.observe(2100 * time.Millisecond)
	n.grouped("holder", in(t1, nil))
	last, up := n.reserveGrouped("pod", 12, in(t1, nil))
	require.Equal(t, 1, up, "one at a time: that the second of the next two lasts long is not improbable enough")
	_, up = n.reserveGrouped("four", 30, in(GroupKey{"t2", ""}, nil))
	require.Equal(t, 16, up, "four at a time, 100 s / (12 * 2.1 s), and one each at once")
	for i := range 30 {
		n.end(fmt.Sprintf("four-%02d", i), reasons.Deleted)
	}
	require.Equal(t, Held{Reason: reasons.PolicyStarting, Policy: t1, Measured: 1, Threshold: 1}, last.Held)
	require.Equal(t, 15, n.reserve("other", 15), "they take nothing from other pods")

	n.pass(50 * time.Second)
	_, up = n.reserveGrouped("later", 12, in(t1, nil))
	require.Equal(t, 1, up, "the holder may take another 50 s; the earlier reservations have expired")
}

// A bound on memory is of as many thousandths of a byte as nobody can count, and the pods that start may ask for none of it,
// or for hardly any.
func TestAReservationCountsPodsAndNotBytes(t *testing.T) {
	t.Parallel()
	const gib = 1000 << 30 // thousandths of a byte
	asks := func(amount int64) []Membership { return in(t1, Amounts{"memory": amount}) }
	for name, c := range map[string]struct {
		starts []Membership
		up     int
	}{
		"nothing starts": {nil, 8}, // two at once, and three times two until the timeout
		"no memory":      {asks(0), 8},
		"a byte":         {asks(1000), 6}, // it counts as a start, and makes the mean a little less
	} {
		t.Run(name, func(t *testing.T) {
			n := testNode(t, Settings{StartTimeout: threeInTime})
			n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": {Starting: Bound{Requests: Amounts{"memory": 2 * gib}}}})
			if c.starts != nil {
				n.grouped("holder", c.starts)
			}
			_, up := n.reserveGrouped("pod", 30, asks(gib))
			require.Equal(t, c.up, up)
			require.Equal(t, 15, n.reserve("other", 15), "they take nothing from other pods")
		})
	}
}

// For a container that ran before, a refusal costs as much as a place that runs out: what is expected decides.
func TestMoreContainersThatRanBeforeWaitInTheGateAlsoInAGroup(t *testing.T) {
	t.Parallel()
	const most = 4
	for name, limits := range map[string]GroupLimits{"of the node": {}, "of a group": {Starting: pods(most)}} {
		up := map[Refusal]int{}
		for _, refusal := range []Refusal{RetriedSoon, RetriedLate} {
			n := newNode(t, Settings{})
			if limits.Starting.Pods == nil {
				n = newNode(t, Settings{MaxConcurrent: most})
			}
			n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": limits})
			n.observe(2 * time.Second)
			for i := range most {
				n.grouped(fmt.Sprint("starting-", i), in(t1, nil))
			}
			for i := range 60 {
				if n.l.Join(n.now, Request{UID: fmt.Sprint(i), Groups: in(t1, nil)}).Reserve(n.now, waitable, refusal).Granted {
					up[refusal]++
				}
			}
		}
		require.Equal(t, map[Refusal]int{RetriedSoon: 16, RetriedLate: 60}, up, name)
	}
}

// Of a group without claims one pod gets a reservation, so that it is present when a claim comes: nobody knows when. Of a
// group that never lets them start, none does. Neither group takes anything from others.
func TestAReservationIsForPodsWhoseGroupMayLetThemStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits GroupLimits
		up     int
	}{
		"no claims yet":       {GroupLimits{Claims: &Claims{}}, 1},
		"more than may start": {GroupLimits{Starting: Bound{Requests: Amounts{"cpu": 100}}}, 0},
		"none ever":           {GroupLimits{Starting: pods(0)}, 0},
		"too much to run":     {GroupLimits{Running: Bound{Requests: Amounts{"cpu": 100}}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			n := testNode(t, Settings{MaxConcurrent: 1, StartTimeout: threeInTime})
			n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": c.limits})
			_, up := n.reserveGrouped("held", 9, in(t1, Amounts{"cpu": 200}))
			require.Equal(t, c.up, up)
			require.Equal(t, 4, n.reserve("other", 9))
		})
	}
}

// A group lets one pod start at a time, or its claims come seldom. No wait in the gate ends without a turn, though
// starts take longer than a pod can wait there; and if they are short, the next pod is there when one ends.
func TestNoPodOfAGroupWaitsInTheGateInVain(t *testing.T) {
	t.Parallel()
	const herd = 12
	oneAtATime, claimed := GroupLimits{Starting: pods(1)}, GroupLimits{Claims: &Claims{Slots: 1}}
	for name, c := range map[string]struct {
		works  time.Duration
		limits GroupLimits
		claims time.Duration // between two slots of the cluster; each is there for 20 s or until it is used
		room   time.Duration
		others int           // pods of no group that start one after the other, in 5 s each
		apart  bool          // each pod is of a kind of its own
		most   time.Duration // for each pod
	}{
		"long starts":              {works: 150 * time.Second, limits: oneAtATime, most: 155 * time.Second},
		"beside short ones":        {works: 150 * time.Second, limits: oneAtATime, others: 360, most: 165 * time.Second},
		"long starts, in the room": {works: 150 * time.Second, limits: oneAtATime, room: time.Second, most: 152 * time.Second},
		"short starts":             {works: 15 * time.Second, limits: oneAtATime, most: 16 * time.Second},
		"each of its own kind":     {works: 15 * time.Second, limits: oneAtATime, apart: true, most: 18500 * time.Millisecond},
		"claims":                   {works: 15 * time.Second, limits: claimed, claims: 80 * time.Second, most: 80 * time.Second},
		"rare claims, in the room": {works: 15 * time.Second, limits: claimed, claims: 400 * time.Second, room: time.Second, most: 400 * time.Second},
	} {
		k := newKubelet(t, 1, Settings{MaxWait: 24 * time.Hour})
		k.room = c.room
		k.l.SetPolicies(t0, map[string]GroupLimits{"t1": c.limits})
		for i := range herd {
			kind := "long"
			if c.apart {
				kind = fmt.Sprint("kind-", i)
			}
			k.create(0, &simPod{groups: in(t1, nil), works: c.works, kind: kind})
		}
		for i := range c.others {
			k.create(time.Duration(i)*5*time.Second, &simPod{works: 5 * time.Second, kind: "short"})
		}
		for i := range 2 * herd {
			came := time.Duration(i) * c.claims
			k.after(came, func() { k.l.SetClaims(k.now, t1, 1) })
			for after := range 20 {
				k.after(came+time.Duration(after+1)*time.Second, func() {
					if len(k.l.Starting()) > 0 || after == 19 {
						k.l.SetClaims(k.now, t1, 0)
					}
				})
			}
		}
		took := k.run()
		require.Zero(t, k.expired, name)
		require.LessOrEqual(t, took, herd*c.most, name)
	}
}

// A container that was refused a slot asks for a place in the gate with that refusal in its hand. The answer is the one of a
// pod that asks alone, and its turn is that which a look at its ticket shows.
func TestAPlaceAfterARefusalIsThatOfAPodThatAsksAlone(t *testing.T) {
	t.Parallel()
	one := int64(1)
	for name, hold := range map[string]func(n *node){
		"queue": func(*node) {},
		"pause": func(n *node) { Pause{Since: n.now, Until: n.now.Add(20 * time.Second)}.Put(n.now, n.l) },
		"policy": func(n *node) {
			in := []Membership{{Key: GroupKey{Policy: "p"}}}
			limits := map[string]GroupLimits{"p": {Starting: Bound{Pods: &one}}}
			n.l.SetPolicies(n.now, limits, PodGroups{UID: "holder", Groups: in}, PodGroups{UID: "asks", Groups: in})
		},
	} {
		for _, gate := range []time.Duration{time.Nanosecond, time.Hour} {
			n := newNode(t, Settings{MaxConcurrent: 1})
			n.observe(time.Second)
			n.joinAndWait("holder", "a", "b", "c")
			asks := n.join("asks")
			hold(n)
			refused := asks.TryStart(n.now)
			require.False(t, refused.Granted, name)
			d, left := asks.ReserveRefused(n.now, gate, RetriedSoon, refused)
			require.Equal(t, gate == time.Hour, d.Granted, name)
			v, _ := n.l.View(n.now, "asks")
			require.Equal(t, asks.Reserve(n.now, gate, RetriedSoon), d, name)
			if d.Granted {
				require.Equal(t, v.WaitLeft, left, name)
				require.Positive(t, left, name)
			}
		}
	}
}
