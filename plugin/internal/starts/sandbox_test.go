package starts

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// An image that cannot be pulled is not being pulled.
func TestAPodThatCannotPullGivesItsPullPermitBack(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.configured(t, "spec: {}", throttle.Settings{MaxConcurrent: 2, MaxPulling: 1})
		bad := n.pod("bad").runs()
		good := n.pod("good")
		require.Equal(t, reasons.Pulling, good.run().Reason)
		bad.reports(func(pod *podwatch.Pod) { pod.CannotMake = true })
		good.runs().starts("app")
		assert.Equal(t, reasons.Preparing, bad.view().Reason)
		bad.starts("app")
		bad.is(throttle.Starting, reasons.WithinLimits)
	})
}

// A pod that is never restarted has its slot before its image is pulled.
func TestAPodThatCannotPullGivesItsSlotBack(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		bad := n.pod("bad")
		d, _ := n.Sandbox(time.Now(), NewSandbox{Sandbox: bad.sandbox, Refusable: true, SlotFirst: true})
		require.True(t, d.Granted)
		bad.is(throttle.Starting, reasons.WithinLimits)
		bad.reports(func(pod *podwatch.Pod) { pod.CannotMake = true })
		bad.is(throttle.Gone, reasons.Abandoned)
		bad.starts("app")
		bad.reports(func(pod *podwatch.Pod) { pod.CannotMake = true })
		bad.is(throttle.Starting, reasons.WithinLimits, "one of its containers runs")
	})
}

// kubelet's report that it cannot pull an image reaches the daemon after the container that kubelet made from it since.
func TestAnOldReportThatAnImageCannotBePulledEndsNothing(t *testing.T) {
	t.Parallel()
	onNode(t, func(_ *testing.T, n *node) {
		old := func(pod *podwatch.Pod) { pod.CannotMake = true }
		first := n.pod("first").runs()
		first.mayStart("app")
		first.reports(old)
		first.is(throttle.Starting, reasons.WithinLimits)
		second := n.pod("second").runs()
		second.waits("app")
		second.reports(old)
		second.is(throttle.Waiting, reasons.Concurrency)
	})
}

func TestTheEndOfAnOlderSandboxEndsNothing(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]func(*Options){"with a pod watch": func(*Options) {}, "standalone": standalone} {
		onNode(t, func(_ *testing.T, n *node) {
			p := n.stranger("moved").runs()
			older := p.sandbox
			p.runs().starts("app")
			n.SandboxStopped(older)
			n.SandboxRemoved(older)
			n.passes(0)
			p.is(throttle.Starting, reasons.WithinLimits, name)
		}, option)
	}
}

func TestAWaitingPodKeepsItsPlaceWhenItsSandboxEnds(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		holder := n.occupies("holder")
		p := n.pod("restarted").runs()
		p.waits("app")
		arrived := p.view().Arrived
		n.pod("later").runs().waits("app")
		n.SandboxStopped(p.sandbox)
		n.SandboxRemoved(p.sandbox)
		p.is(throttle.Waiting, "")
		p.runs().waits("app")
		assert.Equal(t, arrived, p.view().Arrived)
		holder.getsReady()
		p.is(throttle.Starting, reasons.WithinLimits)
	})
}

// The next pod may pull its images instead.
func TestAPodWhoseSandboxEndsGivesItsReservationBack(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.occupies("holder")
		first := n.pod("first").runs()
		refused := n.crowd()
		assert.False(t, refused.run().Granted)
		n.SandboxStopped(first.sandbox)
		assert.True(t, refused.run().Granted)
	})
}

func TestStandaloneARemovedPodLosesItsPlace(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		holder := n.stranger("holder").runs()
		holder.starts("app")
		p := n.stranger("removed").runs()
		n.SandboxRemoved(p.sandbox)
		p.is(throttle.Gone, reasons.SandboxGone)
		n.SandboxRemoved(holder.sandbox)
		holder.is(throttle.Gone, reasons.SandboxGone)
		n.passes(0)
		n.locked(func(l *ledger) {
			assert.Equal(t, []string{"holder"}, l.uids(), "its container is not removed yet")
		})
		n.ContainerRemoved(holder.sandbox, holder.latest["app"])
		n.nothingIsLeft()
	}, standalone)
}

func TestNothingIsRememberedOfPodsThatAreGone(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		starts, waits := n.occupies("starts"), n.pod("waits").runs()
		waits.waits("app")
		for _, p := range []*testPod{starts, waits} {
			p.told(func(pod *podwatch.Pod) { pod.Deleting = true })
			p.is(throttle.Gone, reasons.Deleted)
			n.SandboxStopped(p.sandbox)
			n.ContainerRemoved(p.sandbox, p.latest["app"])
			n.locked(func(l *ledger) { assert.NotContains(t, l.uids(), p.uid) })
			n.SandboxRemoved(p.sandbox)
		}
		n.nothingIsLeft()
	})
}

// nothingIsLeft asserts that no pod waits or starts, and that of no pod more is kept than what policies have to know.
func (n *node) nothingIsLeft() {
	n.t.Helper()
	waiting, starting := n.names()
	assert.Empty(n.t, append(waiting, starting...))
	n.locked(func(l *ledger) {
		assert.Empty(n.t, l.uids())
		for _, p := range l.pods {
			kept := newPod(p.Identity)
			kept.known, kept.matched, kept.ticket = true, p.matched, p.ticket
			assert.Equal(n.t, kept, p)
		}
	})
}

// A pod whose images take long to pull asks for nothing.
func TestAPodWithASandboxKeepsItsPlaceHoweverLongItPulls(t *testing.T) {
	t.Parallel()
	onNode(t, func(_ *testing.T, n *node) {
		n.occupies("holder")
		pulls := n.pod("pulls").runs()
		refused := n.crowd()
		for range 30 {
			n.passes(time.Minute)
		}
		pulls.is(throttle.Waiting, "")
		refused.is(throttle.Gone, reasons.Abandoned)
	})
}

// It takes long to get a sandbox, and the gate fills meanwhile.
func TestAPodOfTheRoomKeepsItsPullPermit(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.configured(t, "spec: {}", throttle.Settings{MaxConcurrent: 1, MaxPulling: 1})
		n.occupies("holder")
		p := n.pod("p")
		ticket, _ := n.EnterRoom(time.Now(), Identity{UID: p.uid, Namespace: "default", Name: p.uid}, n.watch.pods[p.uid], time.Now(), time.Time{}, true)
		require.True(t, ticket.LeaveRoom(time.Now(), time.Hour).Granted)
		for i := range 10 {
			n.joins(time.Now(), throttle.Request{UID: strconv.Itoa(i), Name: "default/other"}).Wait(time.Now())
		}
		time.Sleep(11 * time.Second)
		p.runs()
		assert.Equal(t, 1, n.ledger.limiter.Snapshot(time.Now()).Pulling)
	})
}
