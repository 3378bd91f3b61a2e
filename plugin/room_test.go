package plugin

import (
	"bufio"
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// neverRestarted is a pod whose containers may not wait in the gate.
func neverRestarted(pod *podwatch.Pod) { pod.RestartPolicy = "Never" }

// roomWaiter is the process of a pod in the waiting room.
type roomWaiter struct {
	p       *testPod
	conn    net.Conn
	verdict chan wire.Answer
	told    chan struct{} // closed when it knows its turn
}

// entersRoom makes the pod's CNI plugin ask for admission.
func (p *testPod) entersRoom(wait time.Duration) *roomWaiter {
	return p.entersRoomSince(time.Now(), wait)
}

func (p *testPod) entersRoomSince(since time.Time, wait time.Duration) *roomWaiter {
	p.n.t.Helper()
	var conn net.Conn
	p.n.eventually("the daemon answers the process", func() bool {
		var err error
		conn, err = (&net.Dialer{}).DialContext(p.n.ctx, "unix", p.n.options.SocketPath())
		return err == nil
	})
	_, err := conn.Write(wire.AppendHello(nil, wire.Hello{
		PodUID: p.uid, ContainerID: "s-" + p.uid, Name: p.spec.Namespace + "/" + p.spec.Name,
		Since: since, Deadline: time.Now().Add(wait), Room: true,
	}))
	require.NoError(p.n.t, err)
	w := &roomWaiter{p: p, conn: conn, verdict: make(chan wire.Answer, 1), told: make(chan struct{})}
	done := make(chan struct{})
	told := sync.OnceFunc(func() { close(w.told) })
	go func() {
		defer close(done)
		defer close(w.verdict)
		lines := bufio.NewScanner(conn)
		for lines.Scan() {
			a, err := wire.ParseAnswer(lines.Text())
			switch {
			case err != nil:
			case a.Kind == wire.Go || a.Kind == wire.Abort:
				w.verdict <- a
			case a.Kind == wire.Turn:
				told()
			}
		}
	}()
	p.n.t.Cleanup(func() {
		_ = conn.Close() // it may be closed already
		<-done
	})
	return w
}

// isInRoom makes the pod enter the room, and waits until it is there.
func (p *testPod) isInRoom() *roomWaiter {
	p.n.t.Helper()
	w := p.entersRoom(time.Hour)
	p.n.eventually("the pod is in the room", func() bool {
		return p.n.d.waiting.Room.Pods()[p.uid] || len(w.verdict) > 0
	})
	return w
}

// leaves waits for the verdict.
func (w *roomWaiter) leaves() wire.Answer {
	w.p.n.t.Helper()
	select {
	case a := <-w.verdict:
		return a
	case <-time.After(patience):
		w.p.n.t.Fatal("the pod stays in the room")
		return wire.Answer{}
	}
}

func (w *roomWaiter) isOut() bool { return len(w.verdict) > 0 }

// The load holds all pods, so that as many leave the room at any time. The longer a start that is under way takes, the
// fewer would leave.
func TestPodsLeaveTheRoomInTheirOrderWhenTheirTurnIsNear(t *testing.T) {
	t.Parallel()
	n := newNode(t, `spec: {throttleConfig: {maxConcurrent: {value: 1}, loadAvg: {maxLoad: "4"}}}`, with(newProcTree(t, "9.50").on),
		tuned(func(r *tuning) { r.timing.Settle = 24 * time.Hour }))
	var all []*roomWaiter
	out := func() (count int) {
		for _, w := range all {
			if w.isOut() {
				count++
			}
		}
		return count
	}
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		all = append(all, n.pod(name).isInRoom())
	}
	assert.Zero(t, out(), "pods that an earlier daemon held may be first")
	now, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, n.d.starts.Hooks.Thaw(now))
	n.d.starts.Wake()
	n.eventually("the first pods leave the room", func() bool { return out() == 3 })
	for i, w := range all {
		assert.Equal(t, i < 3, w.isOut(), w.p.spec.Name)
	}
	assert.Len(t, n.d.waiting.Room.Pods(), 3)
	assert.InDelta(t, 3, counted(t, n, "pod_pacemaker_room_waiters"), 0)
	assert.Equal(t, map[string]uint64{"TurnNear": 3}, leftRoom(t, n))
	for i, w := range all {
		why, err := n.d.Status().Why(w.p.spec.Namespace, w.p.spec.Name)
		require.NoError(t, err)
		assert.Equal(t, i >= 3, why.InRoom, w.p.spec.Name)
	}
	waiting, starting := n.names()
	assert.Equal(t, []string{"a", "b", "c", "d", "e", "f"}, waiting)
	assert.Empty(t, starting, "pods in the room take no slot")
	assert.Equal(t, wire.Go, all[0].leaves().Kind)
	all[0].p.runs().waitsAtGate("app")
}

// A daemon that was paused reads the requests of a pod's processes in any order. It also reads requests of processes
// that have ended.
func TestAPodLeavesTheRoomThoughAnEarlierProcessIsGone(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	n.occupy("holder")
	for _, name := range []string{"a", "b", "c"} {
		n.pod(name).isInRoom().leaves()
	}
	p := n.pod("p")
	lives := p.isInRoom()
	gone := p.entersRoom(time.Hour)
	<-gone.told
	require.NoError(t, gone.conn.Close())
	assert.False(t, lives.isOut())
	n.reconfigure("spec: {throttleConfig: {maxConcurrent: {value: 20}}}")
	assert.Equal(t, gate.TurnNear, reasons.Reason(lives.leaves().Reason))
}

func TestAPodFromTheRoomIsNotRefusedAtTheGate(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, with(func(o *Options) { o.RefuseAt = waiting.RefuseSandbox }))
	n.occupy("holder")
	p := n.pod("p")
	assert.Equal(t, wire.Go, p.isInRoom().leaves().Kind)
	for _, name := range []string{"a", "b", "c"} { // these have come before it meanwhile
		n.pod(name, func(pod *podwatch.Pod) { pod.Priority = 1000 }).isInRoom().leaves()
	}
	p.runs().waitsAtGate("app")
	sandboxes, containers := n.d.waiting.Refusals.Counts()
	assert.Zero(t, sandboxes+containers)
}

func TestAPodThatCannotUseTheGateWaitsInTheRoomForItsSlot(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		option nodeOption
		change func(*podwatch.Pod)
	}{
		"never restarted": {func(*node) {}, neverRestarted},
		"a runtime class": {func(*node) {}, func(pod *podwatch.Pod) { pod.RuntimeClass = "kata" }},
		"no gate":         {with(func(o *Options) { o.Gate = waiting.GateNever }), func(*podwatch.Pod) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, oneAtATime, tt.option)
			holder := n.occupy("holder")
			first, second := n.pod("first", tt.change).isInRoom(), n.pod("second", tt.change).isInRoom()
			assert.False(t, first.isOut())
			holder.getsReady()
			assert.Equal(t, wire.Go, first.leaves().Kind)
			waiting, starting := n.names()
			assert.Equal(t, []string{"second"}, waiting)
			assert.Equal(t, []string{"first"}, starting, "it leaves the room with its slot")
			assert.False(t, second.isOut())
			first.p.runs().starts("app")
		})
	}
}

func TestPodsThatNeverWaitInTheRoom(t *testing.T) {
	t.Parallel()
	n := newNode(t, "spec: {throttleConfig: {maxConcurrent: {value: 1}}, exemptions: {namespaces: [kube-system], daemonSets: {namespaces: [default]}}}")
	n.occupy("holder")
	system := n.strangePod("system")
	system.spec.Namespace = "kube-system"
	system.becomesKnown()
	daemon := n.pod("daemon", func(pod *podwatch.Pod) { pod.DaemonSet = true }, neverRestarted)
	for _, p := range []*testPod{system, daemon} {
		assert.Equal(t, wire.Answer{Kind: wire.Go, Reason: string(reasons.Exempt)}, p.entersRoom(time.Hour).leaves())
	}
	waiting, _ := n.names()
	assert.Empty(t, waiting)
	stays := n.pod("stays", neverRestarted).isInRoom()
	n.reconfigure("spec: {mode: \"Off\", throttleConfig: {maxConcurrent: {value: 1}}}")
	assert.Equal(t, wire.Go, stays.leaves().Kind, "waiting pods leave the room, too")
	assert.Equal(t, string(observe.Off), n.pod("off").entersRoom(time.Hour).leaves().Reason)
}

func TestPodsThatLeaveTheRoomWithoutATurn(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	n.occupy("holder")
	late := n.pod("late", neverRestarted)
	a := late.entersRoom(time.Second).leaves()
	assert.Equal(t, wire.Abort, a.Kind)
	assert.True(t, strings.HasPrefix(a.Reason, string(gate.RoomTimeout)+": "), a.Reason)
	assert.Equal(t, throttle.Waiting, n.view(late.uid).State, "the pod keeps its place")

	gone := n.pod("gone", neverRestarted)
	w := gone.isInRoom()
	gone.isDeleted()
	a = w.leaves()
	assert.Equal(t, wire.Abort, a.Kind)
	assert.Contains(t, a.Reason, string(reasons.Deleted))

	n.d.waiting.Room.Shut("the folder changes all the time")
	a = n.pod("shut", neverRestarted).entersRoom(time.Hour).leaves()
	assert.Equal(t, "RoomShut: the folder changes all the time", a.Reason)
	n.d.waiting.Room.Shut("")

	hungUp := n.pod("hung-up", neverRestarted).isInRoom()
	require.NoError(t, hungUp.conn.Close())
	n.eventually("no pod is in the room", func() bool { return len(n.d.waiting.Room.Pods()) == 0 })
	waiting, _ := n.names()
	assert.Equal(t, []string{"late", "shut", "hung-up"}, waiting, "the pods keep their places")
	assert.Equal(t, map[string]uint64{"RoomTimeout": 1, "Deleted": 1, "RoomShut": 1, "HungUp": 1}, leftRoom(t, n))

	n.d.starts.Valve.ShutsDown(true)
	a = n.pod("shutdown", neverRestarted).entersRoom(time.Hour).leaves()
	assert.Equal(t, wire.Abort, a.Kind)
	assert.Contains(t, a.Reason, string(gate.NodeShutdown))
}

// leftRoom returns the number of processes that have left the room, by reason.
func leftRoom(t *testing.T, n *node) map[string]uint64 {
	t.Helper()
	families, err := n.d.observer.Registry().Gather()
	require.NoError(t, err)
	left := map[string]uint64{}
	for _, f := range families {
		if f.GetName() == "pod_pacemaker_room_wait_seconds" {
			for _, m := range f.GetMetric() {
				left[m.GetLabel()[0].GetValue()] = m.GetHistogram().GetSampleCount()
			}
		}
	}
	return left
}

// Pods that waited during a restart of the daemon ask again in any order.
func TestTheRoomKeepsItsOrderOverARestart(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, tuned(func(r *tuning) { r.timing.Settle = 24 * time.Hour }))
	began := time.Now().Add(-time.Minute)
	names := []string{"third", "first", "second"}
	var all []*roomWaiter
	for i, since := range []time.Duration{3 * time.Second, time.Second, 2 * time.Second} {
		all = append(all, n.pod(names[i], neverRestarted).entersRoomSince(began.Add(since), time.Hour))
		n.eventually("the pod has its place", func() bool { waiting, _ := n.names(); return len(waiting) == i+1 })
	}
	waiting, starting := n.names()
	assert.Equal(t, []string{"first", "second", "third"}, waiting)
	assert.Empty(t, starting, "no pod starts, though a slot is free")
	for _, w := range all {
		assert.False(t, w.isOut(), w.p.spec.Name)
	}
}
