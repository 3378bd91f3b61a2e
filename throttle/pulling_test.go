package throttle

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

func TestTheNumberOfPullingPodsHasABound(t *testing.T) {
	n := testNode(t, Settings{MaxPulling: 2})
	require.Equal(t, 2, n.reserve("pod", 5))
	d := n.l.Lookup("pod-02").Reserve(n.now, waitable, RetriedSoon)
	require.False(t, d.Granted)
	require.Equal(t, reasons.Pulling, d.Reason)
	require.Equal(t, Held{Reason: reasons.Pulling, Measured: 2, Threshold: 2}, d.Held)
	require.Equal(t, 2, d.Ahead)
	require.Equal(t, 2, n.l.Snapshot(n.now).Pulling)
	require.True(t, n.l.Lookup("pod-00").Reserve(n.now, waitable, RetriedSoon).Granted, "the pod has its permit already")

	require.True(t, n.l.Lookup("pod-00").TryStart(n.now).Granted, "starts have no limit")
	require.True(t, n.l.Lookup("pod-02").Reserve(n.now, waitable, RetriedSoon).Granted, "the permit of pod-00 is free")
	require.False(t, n.l.Lookup("pod-03").Reserve(n.now, waitable, RetriedSoon).Granted)
}

// A runtime may let a pod pass that has no permit: refusals at the sandbox are not always possible.
func TestAPodThatPullsBeyondTheLimitCounts(t *testing.T) {
	n := testNode(t, Settings{MaxPulling: 1})
	require.Equal(t, 1, n.reserve("pod", 3))
	beyond := n.l.Lookup("pod-01")
	beyond.Prepare(n.now, true)
	require.Equal(t, 2, n.l.Snapshot(n.now).Pulling)
	require.True(t, n.l.Lookup("pod-00").TryStart(n.now).Granted)
	require.False(t, n.l.Lookup("pod-02").Reserve(n.now, waitable, RetriedSoon).Granted, "pod-01 pulls")
	require.True(t, beyond.TryStart(n.now).Granted)
	require.True(t, n.l.Lookup("pod-02").Reserve(n.now, waitable, RetriedSoon).Granted)
}

func TestAPullPermitIsGivenBackOnce(t *testing.T) {
	t.Parallel()
	for name, give := range map[string]func(n *node, a *Ticket){
		"at a container, refused": func(n *node, a *Ticket) { require.False(t, a.TryStart(n.now).Granted) },
		"at a container, waiting": func(n *node, a *Ticket) { a.Wait(n.now) },
		"it cannot pull":          func(n *node, a *Ticket) { a.Prepare(n.now, false) },
		"its sandbox is removed":  func(n *node, a *Ticket) { a.Unreserve(n.now) },
		"deleted":                 func(n *node, a *Ticket) { a.End(n.now, reasons.Deleted) },
		"exempt":                  func(n *node, a *Ticket) { a.StartExempt(n.now) },
		"found":                   func(n *node, _ *Ticket) { n.l.Adopt(n.now, Request{UID: "a"}, n.now) },
		"it takes too long":       func(n *node, _ *Ticket) { n.pass(threeInTime) },
	} {
		t.Run(name, func(t *testing.T) {
			n := testNode(t, Settings{MaxConcurrent: 1, StartTimeout: threeInTime, MaxPulling: 1}, "holder")
			a := n.join("a")
			require.True(t, a.Reserve(n.now, waitable, RetriedSoon).Granted)
			require.False(t, n.join("b").Reserve(n.now, waitable, RetriedSoon).Granted)
			give(n, a)
			give(n, a)
			require.Zero(t, n.l.Snapshot(n.now).Pulling)
			require.True(t, n.join("b").Reserve(n.now, waitable, RetriedSoon).Granted)
			require.Equal(t, 1, n.l.Snapshot(n.now).Pulling)
		})
	}
}

func TestAPodAtItsContainerTakesNoPullPermit(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, MaxPulling: 1, StartTimeout: threeInTime}, "holder")
	require.True(t, n.join("a").Reserve(n.now, waitable, RetriedSoon).Granted)
	b := n.join("b")
	require.False(t, b.TryStart(n.now).Granted)
	require.True(t, b.Reserve(n.now, waitable, RetriedSoon).Granted, "the pod is at its container")
	b.Unreserve(n.now)
	require.False(t, b.Reserve(n.now, waitable, RetriedSoon).Granted, "the new sandbox pulls again")
}

func TestNoPlaceIsTakenWhereThereIsNoRoom(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, MaxPulling: 10, StartTimeout: threeInTime}, "holder")
	require.Equal(t, 3, n.reserve("pod", 9))
	require.Equal(t, 3, n.l.Snapshot(n.now).Pulling)
}

// An image that cannot be pulled does not keep the other pods out for ever. Nor does a crowd of earlier pods.
func TestOverduePodsMayPullOneAtATime(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, MaxPulling: 1, MaxWait: time.Minute, StartTimeout: time.Hour})
	n.observe(2 * time.Second)
	n.joinAndWait("holder")
	require.True(t, n.join("pulls").Reserve(n.now, waitable, RetriedSoon).Granted)
	a, b := n.join("a"), n.join("b")
	require.False(t, a.Reserve(n.now, waitable, RetriedSoon).Granted)
	n.pass(time.Minute)
	require.True(t, b.Reserve(n.now, waitable, RetriedSoon).Granted)
	require.False(t, a.Reserve(n.now, waitable, RetriedSoon).Granted, "overdue pods get a permit one at a time")
	require.True(t, b.TryStart(n.now).Granted, "this is over the limit")
	require.False(t, a.Reserve(n.now, waitable, RetriedSoon).Granted, "only one start at a time is over the limit")
	n.end("b", reasons.Ready)
	require.True(t, a.Reserve(n.now, waitable, RetriedSoon).Granted)
}

func TestAPullPermitIsKeptForAHigherPriority(t *testing.T) {
	n := testNode(t, Settings{MaxPulling: 2})
	require.Equal(t, 2, n.reserve("pod", 4))
	urgent := n.l.Join(n.now, Request{UID: "urgent", Priority: 5})
	require.Equal(t, reasons.Pulling, urgent.Reserve(n.now, waitable, RetriedSoon).Reason)
	free := func(uid string) { require.True(t, n.l.Lookup(uid).TryStart(n.now).Granted) }
	free("pod-00")
	d := n.l.Lookup("pod-02").Reserve(n.now, waitable, RetriedSoon)
	require.False(t, d.Granted)
	require.Equal(t, Held{Reason: reasons.Queued, Measured: 1}, d.Held)
	free("pod-01")
	require.True(t, n.l.Lookup("pod-03").Reserve(n.now, waitable, RetriedSoon).Granted, "two permits are free: one is for urgent, one for the first to ask")
	require.False(t, n.l.Lookup("pod-02").Reserve(n.now, waitable, RetriedSoon).Granted)
	require.True(t, urgent.Reserve(n.now, waitable, RetriedSoon).Granted)
	free("pod-03")
	require.True(t, n.l.Lookup("pod-02").Reserve(n.now, waitable, RetriedSoon).Granted, "no other pod is before it any more")

	require.False(t, n.l.Join(n.now, Request{UID: "late", Priority: 5}).Reserve(n.now, waitable, RetriedSoon).Granted)
	free("pod-02")
	require.False(t, n.join("patient").Reserve(n.now, waitable, RetriedSoon).Granted)
	n.pass(comesWithin)
	require.True(t, n.join("patient").Reserve(n.now, waitable, RetriedSoon).Granted, "the pod late did not come back")
}

// Six urgent pods behind a herd pull before most of it, and the herd takes hardly longer.
func TestUrgentPodsPullEarlyAndTheHerdHardlyTakesLonger(t *testing.T) {
	t.Parallel()
	const herd, urgent, seeds = 54, 6, 20
	play := func(seed uint64, prio int32) (last, all time.Duration) {
		k := newKubelet(t, seed, Settings{MaxPulling: 2, MaxWait: 24 * time.Hour})
		k.pulls = 10 * time.Second
		for i := range herd + urgent {
			p := k.create(time.Duration(i)*100*time.Millisecond, &simPod{works: time.Second})
			if i >= herd {
				p.prio = prio
			}
		}
		all = k.run()
		for i := range urgent {
			last = max(last, k.pods[fmt.Sprintf("%03d", herd+i)].began.Sub(t0))
		}
		return last, all
	}
	var last, all, allAlike time.Duration
	for seed := range uint64(seeds) {
		one, took := play(seed, 1)
		_, alike := play(seed, 0)
		last, all, allAlike = last+one, all+took, allAlike+alike
	}
	t.Logf("the last urgent pod starts after %s, the herd is up after %s, without priorities %s", last/seeds, all/seeds, allAlike/seeds)
	require.Less(t, last, seeds*90*time.Second)
	require.Less(t, all.Seconds(), 1.15*allAlike.Seconds())
}

// Of 60 pods of a namespace, the registry never answers. They come first.
func TestPullsThatHangDoNotHoldOtherNamespaces(t *testing.T) {
	n := testNode(t, Settings{MaxPulling: 2})
	pulled := map[string]time.Duration{}
	asks := func(uid, flow string) bool {
		return n.l.Join(n.now, Request{UID: uid, Flow: flow}).Reserve(n.now, waitable, RetriedSoon).Granted
	}
	for second := range 3600 {
		for i := range 60 { // kubelet tries again every 12 seconds
			if uid := fmt.Sprint("hangs-", i); (second+i)%12 == 0 && n.l.Lookup(uid).pullsNothing() {
				asks(uid, "a")
			}
		}
		for i := range 5 {
			uid := fmt.Sprint("other-", i)
			if ticket := n.l.Lookup(uid); second > 12 && (second+i)%12 == 0 && pulled[uid] == 0 && ticket.pullsNothing() && asks(uid, "b") {
				pulled[uid] = n.now.Sub(t0)
			}
			if ticket := n.l.Lookup(uid); pulled[uid] > 0 && n.now.Sub(t0)-pulled[uid] >= 10*time.Second {
				ticket.TryStart(n.now)
			}
		}
		n.pass(time.Second)
	}
	t.Log(pulled)
	for i := range 5 {
		require.LessOrEqual(t, pulled[fmt.Sprint("other-", i)], 6*time.Minute, "after five minutes, the first two lose their permits")
	}
}

func (t *Ticket) pullsNothing() bool { return t == nil || t.pullsSince.IsZero() }
