package throttle

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// t1 is the group of a policy that does not group.
var t1 = GroupKey{Policy: "t1"}

func in(key GroupKey, asks Amounts) []Membership { return []Membership{{Key: key, Requests: asks}} }

func pods(n int64) Bound { return Bound{Pods: &n} }

func runningRequests(most Amounts) map[string]GroupLimits {
	return map[string]GroupLimits{"t1": {Running: Bound{Requests: most}}}
}

// grouped joins a pod with groups, and a waiter from now on.
func (n *node) grouped(uid string, groups []Membership) *Ticket {
	t := n.l.Join(n.now, Request{UID: uid, Name: "ns/" + uid, Groups: groups})
	t.Wait(n.now)
	return t
}

func (n *node) group(key GroupKey) GroupView {
	n.t.Helper()
	for _, g := range n.l.Groups(n.now) {
		if g.Key == key {
			return g
		}
	}
	require.Fail(n.t, "the group is missing", "%s", key)
	return GroupView{}
}

func (n *node) requireHeld(uid string, reason reasons.Reason, text string) {
	n.t.Helper()
	v, ok := n.l.View(n.now, uid)
	require.True(n.t, ok)
	require.Equal(n.t, Waiting, v.State)
	require.Equal(n.t, reason, v.Reason)
	require.Equal(n.t, text, heldText(v.Held))
}

// heldText returns in short why a policy holds a pod: "group: used of limit resource".
func heldText(h Held) string {
	text := fmt.Sprintf("%s/%s: %g of %g %s", h.Policy.Policy, h.Policy.Group, h.Measured, h.Threshold, cmp.Or(h.Resource, "pods"))
	if h.Resource != "" {
		text += fmt.Sprintf(", asks for %g", h.Asks)
	}
	return text
}

// This is the example of kube-throttler's README, pod by pod.
func TestAPodThatFitsPassesAPodThatDoesNotFit(t *testing.T) {
	n := testNode(t, Settings{})
	gib := int64(1 << 30 * 1000)
	n.l.SetPolicies(n.now, runningRequests(Amounts{"cpu": 200, "memory": gib}))
	n.grouped("pod1", in(t1, Amounts{"cpu": 200}))
	n.requireState("pod1", Starting, reasons.WithinLimits)
	n.end("pod1", reasons.Ready)

	n.grouped("pod2", in(t1, Amounts{"cpu": 300}))
	n.requireHeld("pod2", reasons.Unadmittable, "t1/: 0.2 of 0.2 cpu, asks for 0.3")
	n.grouped("pod1m", in(t1, Amounts{"memory": gib / 2}))
	n.requireState("pod1m", Starting, reasons.WithinLimits)
	require.Equal(t, Usage{Pods: 2, Requests: Amounts{"cpu": 200, "memory": gib / 2}}, n.group(t1).Running)

	n.l.SetPolicies(n.now, runningRequests(Amounts{"cpu": 700, "memory": gib}))
	n.requireState("pod2", Starting, reasons.WithinLimits)
	n.grouped("pod3", in(t1, Amounts{"cpu": 300}))
	n.requireHeld("pod3", reasons.PolicyRunning, "t1/: 0.5 of 0.7 cpu, asks for 0.3")
	n.l.Finished(n.now, "pod1")
	n.requireState("pod3", Starting, reasons.WithinLimits)
	require.Equal(t, Usage{Pods: 3, Requests: Amounts{"cpu": 600, "memory": gib / 2}}, n.group(t1).Running)
}

// This is the example of straggler's README: 4 pods at first, 16 when those are ready, then all.
func TestAnExponentialPacerStartsFourThenSixteenThenTheRest(t *testing.T) {
	n := testNode(t, Settings{})
	n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": {Pacer: Pacer{MinInitial: 4, Multiplier: 4, MaxStagger: 16}}})
	for i := range 40 {
		n.grouped(fmt.Sprintf("%02d", i), in(t1, nil))
	}
	starting := func() []TicketView { return n.l.Snapshot(n.now).Starting }
	ready := func(pods []TicketView) {
		for _, v := range pods {
			n.end(v.UID, reasons.Ready)
		}
	}
	first := starting()
	require.Len(t, first, 4)
	n.requireHeld("04", reasons.PolicyPacer, "t1/: 4 of 4 pods")
	ready(first)
	second := starting()
	require.Len(t, second, 16)
	n.requireHeld("20", reasons.PolicyPacer, "t1/: 16 of 16 pods")
	n.l.SetGroups(n.now, PodGroups{UID: first[0].UID, Groups: in(t1, nil), Running: true, Ready: false})
	n.requireHeld("20", reasons.PolicyPacer, "t1/: 17 of 12 pods")
	n.l.SetGroups(n.now, PodGroups{UID: first[0].UID, Groups: in(t1, nil), Running: true, Ready: true})
	ready(second)
	require.Len(t, starting(), 20)
	require.Equal(t, []int{20, 0}, []int{n.group(t1).Ready, n.group(t1).Waiting})
}

func TestPacersAllowWhatStragglerAllows(t *testing.T) {
	t.Parallel()
	exponential := func(first int, times float64, most int) Pacer {
		return Pacer{MinInitial: first, Multiplier: times, MaxStagger: most}
	}
	linear := Pacer{Step: 5, MaxStagger: 12}
	for _, c := range []struct {
		pacer Pacer
		ready int
		want  int // below zero: any number
	}{
		{exponential(1, 2, 16), 0, 1},
		{exponential(1, 2, 16), 3, 6},
		{exponential(2, 1.5, 16), 4, 6},
		{exponential(2, 1.5, 16), 3, 5},
		{exponential(10, 2, 256), 50, 100},
		{exponential(1, 0.55, 200), 100, 55},
		{exponential(1, 1.1, 200), 110, 121},
		{exponential(1, 1.001, 2000), 1000, 1001},
		{exponential(1, 1.001, 2000), 1001, 1003},
		{exponential(1, 2, 16), 15, 30},
		{exponential(1, 2, 16), 16, -1},
		{exponential(0, 0, 16), 0, 1},
		{exponential(0, 0, 16), 9, 1},
		{linear, 0, 5},
		{linear, 3, 2},
		{linear, 4, 1},
		{linear, 5, 5},
		{linear, 12, -1},
		{Pacer{Step: 1, MaxStagger: 3}, 2, 1},
		{Pacer{}, 0, -1},
	} {
		got, bounded := c.pacer.Allows(c.ready)
		if !bounded {
			got = -1
		}
		require.Equal(t, c.want, got, "%+v with %d ready", c.pacer, c.ready)
	}
}

func TestAHeldGroupBlocksNoOtherPod(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 2})
	n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": {Starting: pods(0)}})
	for i := range 10 {
		n.grouped(fmt.Sprint("held", i), in(t1, nil))
	}
	n.joinAndWait("a", "b", "c")
	n.requireStarting("a", "b")
	v, _ := n.l.View(n.now, "c")
	require.Zero(t, v.Ahead)
	require.Equal(t, reasons.Concurrency, v.Reason)
	v, _ = n.l.View(n.now, "held0")
	require.Equal(t, []any{reasons.PolicyStarting, Settings{}.WithDefaults().MaxWait}, []any{v.Reason, v.WaitLeft})
	require.Equal(t, "t1/: 0 of 0 pods", heldText(v.Held))
	require.Equal(t, "waiting", n.busyWith())
	n.end("a", reasons.Ready)
	require.Equal(t, "starting", n.busyWith(), "no signal helps the waiting pods")
}

func TestGroupsOfOnePolicyHaveCountersOfTheirOwn(t *testing.T) {
	n := testNode(t, Settings{})
	n.l.SetPolicies(n.now, map[string]GroupLimits{"images": {Starting: pods(1)}})
	a, b := GroupKey{"images", "a"}, GroupKey{"images", "b"}
	n.grouped("a1", in(a, nil))
	n.grouped("a2", in(a, nil))
	n.grouped("b1", in(b, nil))
	n.grouped("ab", append(in(a, nil), in(b, nil)...))
	n.requireStarting("a1", "b1")
	n.requireHeld("a2", reasons.PolicyStarting, "images/a: 1 of 1 pods")
	n.end("b1", reasons.Ready)
	n.requireHeld("ab", reasons.PolicyStarting, "images/a: 1 of 1 pods")
	n.end("a1", reasons.Ready)
	n.requireStarting("a2")
	require.Equal(t, int64(0), n.group(b).Starting.Pods, "the first group counts nothing when the second refuses")
	n.end("a2", reasons.Ready)
	n.requireStarting("ab")
}

func TestNothingPassesABoundOfRunning(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, MaxWait: time.Minute})
	n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": {Running: pods(1)}})
	n.grouped("first", in(t1, nil))
	second := n.grouped("second", in(t1, nil))
	n.l.Lookup("first").SetStalled(n.now, n.now)
	require.True(t, n.pass(time.Hour).IsZero(), "nothing needs a wake-up")
	n.requireState("first", Started, reasons.Stuck)
	d := second.DeadlineReached(n.now)
	require.Equal(t, []reasons.Reason{reasons.GateExpired, reasons.PolicyRunning}, []reasons.Reason{d.Reason, d.Held.Reason})
	d = second.Reserve(n.now, waitable, RetriedSoon)
	require.False(t, d.Granted)
	require.Equal(t, reasons.PolicyRunning, d.Reason)
	second.StopWaiting(n.now)
	d = second.TryStart(n.now)
	require.Equal(t, reasons.PolicyRunning, d.Reason)
	n.l.Finished(n.now, "first")
	require.True(t, second.Reserve(n.now, waitable, RetriedSoon).Granted)
	require.True(t, second.TryStart(n.now).Granted)
}

func TestNoMorePodsGetAReservationThanMayRun(t *testing.T) {
	n := testNode(t, Settings{})
	n.l.SetPolicies(n.now, runningRequests(Amounts{"cpu": 1000}))
	big := n.l.Join(n.now, Request{UID: "big", Groups: in(t1, Amounts{"cpu": 800})})
	small := func(uid string) *Ticket {
		return n.l.Join(n.now, Request{UID: uid, Groups: in(t1, Amounts{"cpu": 300})})
	}
	one, two := small("one"), small("two")
	n.l.SetGroups(n.now, PodGroups{UID: "other", Groups: in(t1, Amounts{"cpu": 300}), Running: true, Ready: true})
	require.Equal(t, reasons.PolicyRunning, big.Reserve(n.now, waitable, RetriedSoon).Reason)
	require.Equal(t, reasons.PolicyRunning, one.Reserve(n.now, waitable, RetriedSoon).Reason, "the big pod comes back in seconds")
	n.pass(comesWithin)
	require.True(t, one.Reserve(n.now, waitable, RetriedSoon).Granted)
	require.True(t, two.Reserve(n.now, waitable, RetriedSoon).Granted)
	require.Equal(t, reasons.PolicyRunning, small("three").Reserve(n.now, waitable, RetriedSoon).Reason)
	require.Equal(t, reasons.PolicyRunning, small("three").TryStart(n.now).Reason, "the amount is kept for the pods with a reservation")
	require.True(t, two.TryStart(n.now).Granted)
}

func TestASmallPodDoesNotPassAWaitingLargeOne(t *testing.T) {
	n := testNode(t, Settings{})
	n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": {Starting: Bound{Requests: Amounts{"cpu": 1000}}}})
	n.grouped("first", in(t1, Amounts{"cpu": 500}))
	n.grouped("large", in(t1, Amounts{"cpu": 800}))
	n.requireHeld("large", reasons.PolicyStarting, "t1/: 0.5 of 1 cpu, asks for 0.8")
	small := n.l.Join(n.now, Request{UID: "small", Groups: in(t1, Amounts{"cpu": 100})})
	require.Equal(t, reasons.PolicyStarting, small.TryStart(n.now).Reason)
	small.Wait(n.now)
	n.requireStarting("first")
	n.l.Lookup("small").SetPriority(n.now, 1, 0)
	n.requireStarting("first", "small")
	n.end("first", reasons.Ready)
	n.requireStarting("small", "large")
}

func TestAnOverduePodPassesABoundOfStarting(t *testing.T) {
	n := testNode(t, Settings{MaxWait: time.Minute})
	n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": {Starting: pods(0)}})
	n.grouped("a", in(t1, nil))
	b := n.grouped("b", in(t1, nil))
	n.pass(n.pass(0).Sub(n.now))
	require.Equal(t, t0.Add(time.Minute), n.now)
	n.requireState("a", Starting, reasons.MaxWait)
	require.False(t, b.DeadlineReached(n.now).Granted, "deadlines pass one at a time")
	n.end("a", reasons.Ready)
	n.requireState("b", Starting, reasons.MaxWait)
}

func TestPodsThatBypassTheLimitOrAreExemptCount(t *testing.T) {
	n := testNode(t, Settings{})
	n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": {Starting: pods(1), Running: pods(2)}})
	n.grouped("held", in(t1, nil))
	n.grouped("bypass", []Membership{{Key: t1, Bypass: true}})
	exempt := n.l.Join(n.now, Request{UID: "exempt", Groups: in(t1, nil)})
	exempt.StartExempt(n.now)
	n.requireStarting("held", "bypass", "exempt")
	require.Equal(t, int64(3), n.group(t1).Starting.Pods)
	require.Equal(t, int64(3), n.group(t1).Running.Pods)
	n.end("held", reasons.Ready)
	n.end("bypass", reasons.Ready)
	n.end("exempt", reasons.Ready)
	n.grouped("next", in(t1, nil))
	n.requireHeld("next", reasons.PolicyRunning, "t1/: 3 of 2 pods")
}

func TestAPodThatRunsCountsOnceAndStartsAgain(t *testing.T) {
	n := testNode(t, Settings{})
	n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": {Running: pods(1)}})
	n.grouped("a", in(t1, nil))
	n.end("a", reasons.Ready)
	require.Equal(t, 1, n.group(t1).Ready)
	n.end("a", reasons.Exited)
	n.grouped("a", nil)
	n.requireStarting("a")
	require.Equal(t, int64(1), n.group(t1).Running.Pods)
	require.Zero(t, n.group(t1).Ready)
	n.grouped("b", in(t1, nil))
	n.requireHeld("b", reasons.PolicyRunning, "t1/: 1 of 1 pods")
	n.end("a", reasons.Deleted)
	n.requireHeld("b", reasons.PolicyRunning, "t1/: 1 of 1 pods")
	n.l.Finished(n.now, "a")
	n.requireStarting("b")
}

func TestNoPodWaitsBehindAPodThatMayNeverRun(t *testing.T) {
	n := testNode(t, Settings{})
	n.l.SetPolicies(n.now, runningRequests(Amounts{"cpu": 500}))
	n.grouped("never", in(t1, Amounts{"cpu": 501}))
	n.grouped("a", in(t1, Amounts{"cpu": 500}))
	n.requireStarting("a")
	n.requireHeld("never", reasons.Unadmittable, "t1/: 0.5 of 0.5 cpu, asks for 0.501")
	n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": {Running: pods(0)}})
	n.requireHeld("never", reasons.Unadmittable, "t1/: 1 of 0 pods")
	n.l.SetPolicies(n.now, nil)
	n.requireStarting("a", "never")
}

func TestClaimsBoundTheStarts(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 3})
	n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": {Claims: &Claims{}}})
	for i := range 5 {
		n.grouped(fmt.Sprint(i), in(t1, nil))
	}
	n.requireHeld("0", reasons.PolicyClaim, "t1/: 0 of 0 pods")
	require.Equal(t, 3, n.group(t1).Wants, "as many as the node has slots")
	n.l.SetClaims(n.now, t1, 2)
	n.requireStarting("0", "1")
	require.Equal(t, 1, n.group(t1).Wants)
	n.end("0", reasons.Ready)
	n.requireStarting("1", "2")
	n.l.SetClaims(n.now, t1, 0)
	n.requireStarting("1", "2")
	n.end("1", reasons.Ready)
	n.requireStarting("2")
	n.l.SetClaims(n.now, t1, -1)
	n.requireStarting("2", "3", "4")
	require.Zero(t, n.group(t1).Wants)
	n.joinAndWait("free")
	n.end("2", reasons.Ready)
	n.requireStarting("3", "4", "free")
}

func TestClaimsMayComeBeforeTheirPolicy(t *testing.T) {
	n := testNode(t, Settings{})
	n.l.SetClaims(n.now, t1, 1)
	n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": {Claims: &Claims{}, Running: pods(3)}})
	for _, uid := range []string{"a", "b", "c", "d", "e"} {
		n.grouped(uid, in(t1, nil))
	}
	n.requireStarting("a")
	require.Equal(t, 2, n.group(t1).Wants, "no more claims than pods may run")
	n.l.SetPolicies(n.now, nil)
	n.requireStarting("a", "b", "c", "d", "e")
	n.l.SetClaims(n.now, t1, 0)
	for _, uid := range []string{"a", "b", "c", "d", "e"} {
		n.end(uid, reasons.Ready)
		n.l.Finished(n.now, uid)
	}
	require.Empty(t, n.l.Groups(n.now))
}

func TestClaimsAreWantedForPodsThatAreAwayForSeconds(t *testing.T) {
	n := testNode(t, Settings{})
	n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": {Claims: &Claims{}}})
	a := n.l.Join(n.now, Request{UID: "a", Groups: in(t1, nil)})
	require.Equal(t, reasons.PolicyClaim, a.TryStart(n.now).Reason)
	require.Equal(t, 1, n.group(t1).Wants)
	n.l.SetClaims(n.now, t1, 1)
	require.Zero(t, n.group(t1).Wants)
	require.True(t, a.TryStart(n.now).Granted)
}

// Otherwise a node would take slots of the whole cluster again and again for a pod that pulls its images for minutes,
// or never comes back.
func TestClaimsAreNotWantedForPodsThatStayAway(t *testing.T) {
	n := testNode(t, Settings{})
	n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": {Claims: &Claims{}}})
	pulls := n.l.Join(n.now, Request{UID: "pulls", Groups: in(t1, nil)})
	require.True(t, pulls.Reserve(n.now, time.Minute, RetriedSoon).Granted)
	refused := n.l.Join(n.now, Request{UID: "refused", Groups: in(t1, nil)})
	require.False(t, refused.TryStart(n.now).Granted)
	require.Equal(t, 2, n.group(t1).Wants)
	n.pass(comesWithin - time.Millisecond)
	require.Equal(t, 2, n.group(t1).Wants, "both may still come")
	n.pass(time.Millisecond)
	require.Zero(t, n.group(t1).Wants, "none has come")
	require.True(t, pulls.reserved, "reading the groups changes nothing")
	pulls.Wait(n.now)
	require.Equal(t, 1, n.group(t1).Wants)
}

func TestPoliciesAndGroupsChangeWhilePodsWait(t *testing.T) {
	n := testNode(t, Settings{})
	n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": {Running: pods(1)}, "t2": {Running: pods(0)}})
	n.grouped("a", in(t1, nil))
	n.grouped("b", in(t1, nil))
	n.grouped("c", in(GroupKey{Policy: "t2"}, nil))
	n.requireStarting("a")
	n.l.SetGroups(n.now, PodGroups{UID: "a", Groups: nil})
	n.requireStarting("a", "b")
	n.l.SetGroups(n.now, PodGroups{UID: "a", Groups: in(t1, nil)})
	require.Equal(t, []int64{2, 2}, []int64{n.group(t1).Running.Pods, n.group(t1).Starting.Pods}, "pod a counts again: it starts and runs")
	n.l.SetGroups(n.now, PodGroups{UID: "c", Groups: in(t1, nil)})
	n.requireHeld("c", reasons.PolicyRunning, "t1/: 2 of 1 pods")
	n.l.SetPolicies(n.now, map[string]GroupLimits{"t2": {Running: pods(0)}})
	n.requireStarting("a", "b", "c")
}

// A pod that starts again, and was never ready, counts among the starting pods. It does not wait for itself.
func TestAPacerDoesNotHoldAPodThatStartsAgain(t *testing.T) {
	n := testNode(t, Settings{})
	n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": {Pacer: Pacer{MinInitial: 1, Multiplier: 1, MaxStagger: 9}}})
	n.grouped("crashes", in(t1, nil))
	n.grouped("waits", in(t1, nil))
	n.end("crashes", reasons.Exited)
	n.requireHeld("waits", reasons.PolicyPacer, "t1/: 1 of 1 pods")
	again := n.grouped("crashes", in(t1, nil))
	state, _ := again.Status()
	require.Equal(t, Starting, state)
	n.requireHeld("waits", reasons.PolicyPacer, "t1/: 1 of 1 pods")
	n.end("crashes", reasons.Ready)
	require.Zero(t, n.group(t1).Waiting)
}

func TestAGroupSaysWhatItsBoundsAreUsedFor(t *testing.T) {
	n := testNode(t, Settings{})
	most := Bound{Requests: Amounts{"cpu": 900}}
	n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": {Starting: most, Running: most}})
	n.grouped("runs", in(t1, Amounts{"cpu": 200, "memory": 1000}))
	n.end("runs", reasons.Ready)
	n.grouped("starts", in(t1, Amounts{"cpu": 300}))
	g := n.group(t1)
	require.Equal(t, Usage{Pods: 1, Requests: Amounts{"cpu": 300}}, g.Starting)
	require.Equal(t, Usage{Pods: 2, Requests: Amounts{"cpu": 500}}, g.Running, "no bound names memory, so it is not counted")
}

// A claim of one group alone starts no pod that is in two. All nodes take claims in the same order, so that no two nodes
// each wait for what the other one has.
func TestAPodInTwoGroupsWithClaimsWantsOneAfterTheOther(t *testing.T) {
	n := testNode(t, Settings{})
	t2 := GroupKey{Policy: "t2"}
	slots := func(first, second int) {
		n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": {Claims: &Claims{Slots: first}}, "t2": {Claims: &Claims{Slots: second}}})
	}
	wants := func(first, second int) {
		t.Helper()
		require.Equal(t, []int{first, second}, []int{n.group(t1).Wants, n.group(t2).Wants})
	}
	slots(2, 2)
	for _, uid := range []string{"a", "b", "c"} {
		n.grouped(uid, []Membership{{Key: t1}, {Key: t2}})
	}
	wants(2, 0) // there are two at most of the second group
	slots(5, 2)
	wants(0, 3)
	n.l.SetClaims(n.now, t2, 1)
	wants(1, 2)
	n.requireStarting()
	n.l.SetClaims(n.now, t1, 1)
	n.requireStarting("a")
	wants(0, 2)
	n.l.SetClaims(n.now, t2, -1)
	wants(2, 0)
}

// A pod is behind those that the same group holds, and not behind those of another.
func TestAPodIsBehindThoseThatItsGroupHolds(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{})
	n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": {Starting: pods(1)}})
	other := GroupKey{Policy: "t1", Group: "other"}
	for i, group := range []GroupKey{t1, other, t1, other, t1, t1} { // the first of each starts
		n.grouped(fmt.Sprint(i), in(group, nil))
	}
	var ahead []int
	for _, v := range n.l.Snapshot(n.now).Waiting {
		ahead = append(ahead, v.Ahead)
	}
	require.Equal(t, []int{0, 0, 1, 2}, ahead)
	require.Equal(t, 2, n.l.Lookup("5").TryStart(n.now).Ahead)
}
