package waiting

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

func TestAPodThatCannotUseTheGateWaitsInTheRoomForItsSlot(t *testing.T) {
	t.Parallel()
	never := restarted("Never")
	for name, tt := range map[string]struct {
		option func(*Options)
		change func(*podwatch.Pod)
	}{
		"never restarted": {func(*Options) {}, never},
		"a runtime class": {func(*Options) {}, func(pod *podwatch.Pod) { pod.RuntimeClass = "kata" }},
		"no gate":         {gateUse(GateNever), func(*podwatch.Pod) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onNode(t, func(t *testing.T, n *node) {
				holder := n.occupy("holder")
				p := n.pod("first", tt.change)
				first, second := p.entersRoom(), n.pod("second", tt.change).entersRoom()
				n.passes(time.Minute)
				assert.False(t, first.over())
				assert.NotEmpty(t, first.told())
				holder.getsReady()
				assert.Equal(t, gate.Verdict{Go: true, Reason: reasons.WithinLimits}, first.result())
				waiting, starting := n.names()
				assert.Equal(t, []string{"second"}, waiting)
				assert.Equal(t, []string{"first"}, starting, "it leaves the room with its slot")
				assert.False(t, second.over())
				p.runs().starts("app")
			}, tt.option)
		})
	}
}

// Pods in the room are the only ones that can show that hooks work again.
func TestPodsLeaveTheRoomForTheGateAgainAfterHooksFailed(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.observed(time.Second)
		holder := n.occupy("holder")
		failed := n.pod("failed").runs()
		failed.makes("app").isRemoved() // its hook fails
		n.inAnother("fails-too").runs().makes("app").isRemoved()
		require.NotEmpty(t, n.Gate.Off())
		soon := n.pod("soon")
		inRoom := soon.entersRoom()
		n.passes(tripsFirst)
		assert.False(t, inRoom.over(), "it came while no container gets a hook")
		soon.isDeleted()
		assert.False(t, failed.entersRoom().over(), "it gets no hook any more")
		failed.isDeleted()
		holder.getsReady()
		n.occupy("next")
		p := n.pod("tries")
		assert.Equal(t, gate.Verdict{Go: true, Reason: gate.TurnNear}, p.entersRoom().result())
		p.runs().waits("app")
		assert.Empty(t, n.Gate.Off(), "hooks work again")
	})
}

func TestPodsThatNeverWaitInTheRoom(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		one := throttle.Settings{MaxConcurrent: 1}
		n.configure("spec: {exemptions: {namespaces: [kube-system], daemonSets: {namespaces: [default]}}}", one)
		n.occupy("holder")
		system := n.pod("system")
		system.sandbox.Namespace = "kube-system"
		daemon := n.pod("daemon", restarted("Never"), func(pod *podwatch.Pod) { pod.DaemonSet = true })
		for _, p := range []*pod{system, daemon} {
			assert.Equal(t, gate.Verdict{Go: true, Reason: reasons.Exempt}, p.entersRoom().result())
		}
		waiting, _ := n.names()
		assert.Empty(t, waiting)
		stays := n.pod("stays", restarted("Never")).entersRoom()
		require.False(t, stays.over())
		for mode, why := range map[string]reasons.Reason{`Shadow`: observe.Shadow, `Disabled`: observe.Disabled} {
			n.configure("spec: {mode: "+mode+"}", one)
			assert.True(t, stays.result().Go, "waiting pods leave the room, too")
			assert.Equal(t, gate.Verdict{Go: true, Reason: why}, n.pod("late").entersRoom().result())
			assert.Equal(t, gate.Verdict{Go: true, Reason: why}, n.stranger("unknown").entersRoom().result(), "the pod watch is not asked")
		}
		waiting, _ = n.names()
		assert.Equal(t, []string{"stays"}, waiting, "the others have not joined the queue")
	})
}

func TestPodsThatLeaveTheRoomWithoutATurn(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.occupy("holder")
		never := restarted("Never")
		late := n.pod("late", never)
		a := late.entersRoomUntil(time.Time{}, time.Minute)
		n.passes(time.Minute)
		assert.Equal(t, gate.Verdict{Reason: gate.RoomTimeout}, a.result())
		assert.Equal(t, throttle.Waiting, late.view().State, "the pod keeps its place")

		gone := n.pod("gone", never)
		a = gone.entersRoom()
		gone.isDeleted()
		assert.Equal(t, gate.Verdict{Reason: reasons.Deleted}, a.result())

		inside := n.pod("shut", never).entersRoom()
		n.Room.Shut("the folder changes all the time")
		n.passes(time.Minute)
		for _, a := range []*asker{inside, n.pod("shut too", never).entersRoom()} {
			assert.Equal(t, gate.Verdict{Reason: "RoomShut: the folder changes all the time"}, a.result())
		}
		n.Room.Shut("")

		n.pod("hung-up", never).entersRoom().hangsUp()
		assert.Empty(t, n.Room.Pods())
		waiting, _ := n.names()
		assert.Equal(t, []string{"late", "shut", "shut too", "hung-up"}, waiting, "the pods keep their places")
		assert.Equal(t, map[string]float64{"RoomTimeout": 1, "Deleted": 1, "RoomShut": 2, "HungUp": 1}, n.counted("room_wait_seconds"))
	})
}

// Otherwise nothing would start in its slot until kubelet tries again, 10 to 15 seconds later.
func TestAPodWhoseTurnComesAsItsTimeInTheRoomEndsStarts(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		for i := range 20 { // which of the two is seen first is random
			holder := n.occupy(fmt.Sprint("holder-", i))
			p := n.pod(fmt.Sprint("late-", i), restarted("Never"))
			h := gate.Hello{PodUID: p.uid, ContainerID: "s-" + p.uid, Name: "default/" + p.uid, Deadline: time.Now().Add(time.Minute), Room: true}
			once := sync.OnceFunc(func() {
				time.Sleep(time.Minute)
				holder.getsReady()
			})
			v, err := n.Wait(t.Context(), h, func(time.Time, int, time.Duration) { once() })
			require.NoError(t, err)
			assert.Equal(t, gate.Verdict{Go: true, Reason: reasons.WithinLimits}, v)
			p.runs().starts("app")
			p.getsReady()
		}
	})
}

// The pod watch may not know the pod yet. No handler of the runtime is held meanwhile.
func TestTheRoomWaitsAMomentForThePodWatch(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.occupy("holder")
		p := n.stranger("unknown")
		w := p.entersRoom()
		n.passes(roomKnownWithin - 100*time.Millisecond)
		assert.False(t, n.Room.Pods()[p.uid])
		n.passes(100 * time.Millisecond)
		assert.True(t, n.Room.Pods()[p.uid])
		assert.False(t, w.over())
	})
}

func TestAPodThatBecomesExemptLeavesTheRoom(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.occupy("holder")
		isDaemon := func(pod *podwatch.Pod) { pod.DaemonSet = true }
		known := n.pod("known", restarted("Never"), isDaemon).entersRoom()
		require.False(t, known.over())
		n.configure("spec: {exemptions: {daemonSets: {namespaces: [default]}}}", throttle.Settings{MaxConcurrent: 1})
		assert.Equal(t, gate.Verdict{Go: true, Reason: reasons.Exempt}, known.result())

		p := n.stranger("unknown")
		unknown := p.entersRoom()
		n.passes(roomKnownWithin)
		require.False(t, unknown.over())
		n.pod("unknown", restarted("Never"), isDaemon)
		assert.Equal(t, gate.Verdict{Go: true, Reason: reasons.Exempt}, unknown.result())
		p.runs().starts("app")
		waiting, _ := n.names()
		assert.Empty(t, waiting)
	})
}

// The API server may be away, or have no mirror of the pod yet.
func TestAStaticPodThatIsNotKnownDoesNotWaitInTheRoom(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.occupy("holder")
		static := n.stranger("8e54bc8f2b8f0cf1a3a8a4a2f2f4d5c1").entersRoom()
		n.passes(roomKnownWithin)
		assert.Equal(t, gate.Verdict{Go: true, Reason: reasons.Exempt}, static.result())
		other := n.stranger("0b5f3c1e-6f0a-4c53-9a52-1f1d9d0f6f11").entersRoom()
		n.passes(roomKnownWithin)
		assert.False(t, other.over())
	})
}
