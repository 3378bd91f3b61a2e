package waiting

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// freeze stops the room, as after a start of the daemon. thaw ends that.
func (n *node) freeze() { n.o.Starts.Freeze() }

func (n *node) thaw() {
	now, cancel := context.WithCancel(n.t.Context())
	cancel()
	require.NoError(n.t, n.o.Starts.Thaw(now))
	n.o.Starts.Wake()
	n.passes(0)
}

func TestPodsLeaveTheRoomInTheirOrderWhenTheirTurnIsNear(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.observed(2800 * time.Millisecond)
		n.longest(34 * time.Second) // three in 100 s: at once, after 34 s and after 68 s
		names, all := []string{"a", "b", "c", "d", "e", "f"}, map[string]*asker{}
		out := func() (left []string) {
			for _, name := range names {
				if all[name].over() {
					left = append(left, name)
				}
			}
			return left
		}
		n.freeze()
		for _, name := range names {
			all[name] = n.pod(name).entersRoom()
		}
		n.passes(roomRound)
		assert.Empty(t, out(), "pods that an earlier daemon held may be first")
		assert.Len(t, n.Room.Pods(), 6)
		n.thaw()
		require.Equal(t, []string{"a", "b", "c"}, out())
		assert.Equal(t, gate.Verdict{Go: true, Reason: gate.TurnNear}, all["c"].result())
		assert.Len(t, n.Room.Pods(), 3)
		assert.False(t, n.Room.Pods()["c"])
		assert.True(t, n.Room.Pods()["d"])
		assert.Equal(t, map[string]float64{string(gate.TurnNear): 3}, n.counted("room_wait_seconds"))
		waiting, starting := n.names()
		assert.Equal(t, names, waiting)
		assert.Empty(t, starting, "pods in the room take no slot")
		for range 4 { // pods that have left and do not come keep out no other pod for long
			n.passes(10 * time.Second)
		}
		assert.Greater(t, len(out()), 3)
		assert.Equal(t, names[:len(out())], out())
	}, gateTimeout(100*time.Second))
}

// Right after a change of its folder, no process may wait in the room, and kubelet warns of each that it sends away. So
// pods leave for the gate that have to wait there longer than others.
func TestMorePodsLeaveTheRoomWhileNoneMayWaitThere(t *testing.T) {
	t.Parallel()
	left := map[bool]int{}
	for _, brief := range []bool{false, true} {
		onNode(t, func(_ *testing.T, n *node) {
			for _, name := range []string{"1", "2", "3", "4", "5"} { // the daemon learns what a start takes
				p := n.pod(name)
				p.runs().starts("app")
				n.passes(4 * time.Second)
				p.getsReady()
			}
			n.occupy("holder")
			for i := range 20 {
				p := n.pod(string(rune('a' + i)))
				a := n.asks(gate.Hello{
					PodUID: p.uid, ContainerID: "s-" + p.uid, Name: p.sandbox.GetNamespace() + "/" + p.uid, Deadline: time.Now().Add(time.Hour), Room: true, Brief: brief,
				})
				n.passes(0)
				if a.over() {
					left[brief]++
				}
			}
		})
	}
	t.Log(left)
	assert.Greater(t, left[true], left[false])
}

// Without a process that waits, a pod loses its place when kubelet has not retried it for ten minutes.
func TestAPodKeepsItsPlaceAsLongAsItIsInTheRoom(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.configure("spec: {}", throttle.Settings{MaxConcurrent: 1, MaxWait: 24 * time.Hour})
		n.freeze()
		a := n.pod("p").entersRoom()
		n.passes(45 * time.Minute)
		waiting, _ := n.names()
		assert.Equal(t, []string{"p"}, waiting)
		a.hangsUp()
		n.passes(45 * time.Minute)
		waiting, _ = n.names()
		assert.Empty(t, waiting)
	})
}

// Pods that waited during a restart of the daemon ask again in any order.
func TestTheRoomKeepsItsOrderOverARestart(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.freeze()
		began := time.Now().Add(-time.Minute)
		all := map[string]*asker{}
		for _, c := range []struct {
			name  string
			after time.Duration
		}{{"third", 3 * time.Second}, {"first", time.Second}, {"second", 2 * time.Second}} {
			all[c.name] = n.pod(c.name, restarted("Never")).entersRoomUntil(began.Add(c.after), time.Hour)
		}
		waiting, starting := n.names()
		assert.Equal(t, []string{"first", "second", "third"}, waiting)
		assert.Empty(t, starting, "no pod starts, though a slot is free")
		n.thaw()
		assert.True(t, all["first"].result().Go)
		assert.False(t, all["second"].over())
		assert.False(t, all["third"].over())
	})
}

// A daemon that was paused reads the requests of a pod's processes in any order. It also reads requests of processes
// that have ended.
func TestAPodLeavesTheRoomThoughAnEarlierProcessIsGone(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.observed(2 * time.Second)
		n.longest(26 * time.Second) // three in 100 s: after 26 s, 52 s and 78 s
		n.occupy("holder")
		for _, name := range []string{"a", "b", "c"} {
			require.Equal(t, gate.TurnNear, n.pod(name).entersRoom().result().Reason)
		}
		p := n.pod("p")
		lives, gone := p.entersRoom(), p.entersRoom()
		assert.Len(t, n.Room.Pods(), 1, "pods are counted")
		gone.hangsUp()
		assert.True(t, n.Room.Pods()["p"])
		assert.False(t, lives.over())
		n.configure("spec: {}", throttle.Settings{MaxConcurrent: 20})
		assert.Equal(t, gate.TurnNear, lives.result().Reason)
	}, gateTimeout(100*time.Second))
}

// The pods that came before it meanwhile wait for longer.
func TestAPodFromTheRoomIsNotRefusedAtTheGate(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.observed(2 * time.Second)
		n.longest(26 * time.Second) // three in 100 s
		n.occupy("holder")
		p := n.pod("p")
		assert.True(t, p.entersRoom().result().Go)
		urgent := func(pod *podwatch.Pod) { pod.Priority = 1000 }
		for _, name := range []string{"a", "b", "c"} {
			assert.True(t, n.pod(name, urgent).entersRoom().result().Go)
		}
		p.runs().waits("app")
		sandboxes, containers := n.Refusals.Counts()
		assert.Zero(t, sandboxes+containers)
		other := n.pod("other")
		assert.Error(t, other.run(), "a pod that was not in the room is refused")
	}, refuseAt(RefuseSandbox), gateTimeout(100*time.Second))
}
