package plugin

import (
	"bufio"
	"context"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// entersRoom makes the pod's CNI plugin ask for admission, as one that has waited since a time. It returns the answer.
func (p *testPod) entersRoom(since time.Time) <-chan wire.Answer {
	p.n.t.Helper()
	verdict := p.comesToRoom(since)
	p.n.eventually("the pod is in the room", func() bool { return p.n.d.waiting.Room.Pods()[p.uid] })
	return verdict
}

// comesToRoom is entersRoom for a pod that need not stay.
func (p *testPod) comesToRoom(since time.Time) <-chan wire.Answer {
	p.n.t.Helper()
	var conn net.Conn
	p.n.eventually("the daemon answers the process", func() bool {
		var err error
		conn, err = (&net.Dialer{}).DialContext(p.n.ctx, "unix", p.n.options.SocketPath())
		return err == nil
	})
	_, err := conn.Write(wire.AppendHello(nil, wire.Hello{
		PodUID: p.uid, ContainerID: "s-" + p.uid, Name: p.spec.Namespace + "/" + p.spec.Name,
		Since: since, Deadline: time.Now().Add(time.Hour), Room: true,
	}))
	require.NoError(p.n.t, err)
	verdict, done := make(chan wire.Answer, 1), make(chan struct{})
	go func() {
		defer close(done)
		lines := bufio.NewScanner(conn)
		for lines.Scan() {
			if a, err := wire.ParseAnswer(lines.Text()); err == nil && (a.Kind == wire.Go || a.Kind == wire.Abort) {
				verdict <- a
			}
		}
	}()
	p.n.t.Cleanup(func() {
		_ = conn.Close() // it may be closed already
		<-done
	})
	return verdict
}

// Pods that waited during a restart of the daemon ask again in any order, and leave in theirs. Each goes on to the gate.
func TestPodsGoFromTheRoomToTheGateInTheirOrderOverARestart(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, tuned(func(r *tuning) { r.timing.RoomReturns = 24 * time.Hour }))
	began := time.Now().Add(-time.Minute)
	pods, verdicts := map[string]*testPod{}, map[string]<-chan wire.Answer{}
	inRoom := func(name string) bool {
		why, err := n.d.Status().Why("default", name)
		require.NoError(t, err)
		if why.InRoom {
			assert.Equal(t, reasons.Queued, why.Reason)
		}
		return why.InRoom
	}
	leaves := func(name string) wire.Answer {
		n.eventually("the pod leaves the room", func() bool { return len(verdicts[name]) > 0 })
		return <-verdicts[name]
	}
	for i, place := range []int{5, 1, 4, 2, 3} {
		name := strconv.Itoa(place)
		pods[name] = n.pod(name)
		verdicts[name] = pods[name].entersRoom(began.Add(time.Duration(place) * time.Second))
		assert.InDelta(t, i+1, counted(t, n, "pod_pacemaker_room_waiters"), 0)
		assert.True(t, inRoom(name))
	}
	waiting, starting := n.names()
	assert.Equal(t, []string{"1", "2", "3", "4", "5"}, waiting)
	assert.Empty(t, starting, "no pod starts, though a slot is free")
	// A pod that left and does not come within 10 s makes way for another. So many follow that the last stays.
	for place := 6; place <= 40; place++ {
		n.pod(strconv.Itoa(place)).entersRoom(began.Add(time.Duration(place) * time.Second))
	}
	now, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, n.d.starts.Thaw(now))
	n.d.starts.Wake()
	assert.Equal(t, wire.Answer{Kind: wire.Go, Reason: string(gate.TurnNear)}, leaves("1"))
	assert.True(t, inRoom("40"), "its turn is not near")
	pods["1"].runs().startsNow("app")
	pods["1"].getsReady()
	assert.Equal(t, wire.Go, leaves("2").Kind)
	assert.Equal(t, wire.Go, leaves("3").Kind)
	pods["2"].runs().startsNow("app")
	next := pods["3"].runs().waitsAtGate("app")
	assert.False(t, inRoom("3"))
	pods["2"].getsReady()
	next.succeeds()
	assert.Equal(t, reasons.WithinLimits, n.view(pods["3"].uid).Reason)
}
