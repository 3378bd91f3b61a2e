package plugin

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// A slot that became free while there was no daemon is the first waiter's, not
// that of the hook which happens to come back first.
func TestASlotThatIsFreeAfterARestartGoesToTheFirstInLine(t *testing.T) {
	t.Parallel()
	n := newNode(t, twoAtATime, tuned(func(p *pacer) { p.muster.most = patience }))
	holders := []*testPod{n.occupy("holder-0"), n.occupy("holder-1")}
	var waiting []*attempt
	for i := range 5 {
		waiting = append(waiting, n.pod(fmt.Sprintf("waits-%d", i)).runs().waitsAtGate("app"))
	}
	n.stopDaemon()
	for _, p := range holders {
		p.getsReady()
	}
	n.startDaemon()
	n.connected()
	for i, a := range waiting {
		a.succeeds()
		for j := i + 2; j < len(waiting); j++ {
			assert.False(t, waiting[j].over(), "%s goes after %s", waiting[j].pod.spec.Name, a.pod.spec.Name)
		}
		if i > 0 {
			waiting[i-1].pod.getsReady()
		}
	}
	n.noHookIsLeft()
}

// created is a container whose hook may wait.
func created(id string) *api.Container {
	return &api.Container{Id: id, State: api.ContainerState_CONTAINER_CREATED}
}

// musterOf gives a muster of containers, and a limiter whose tickets a, b and c
// wait in this order for one slot.
func musterOf(ctrs ...*api.Container) (*muster, map[string]*throttle.Ticket) {
	l := throttle.New(time.Now(), throttle.Settings{MaxConcurrent: 1})
	tickets := map[string]*throttle.Ticket{}
	for _, uid := range []string{"a", "b", "c"} {
		tickets[uid] = l.Join(time.Now(), throttle.Request{UID: uid})
	}
	m := newMuster(func() []string { return []string{"a", "b", "c"} })
	m.expect(ctrs)
	return m, tickets
}

// arrives has the hook of a pod come.
func (m *muster) arrives(t *throttle.Ticket) {
	go func() {
		if !m.join(context.Background(), t, t.UID()) {
			t.Wait(time.Now())
		}
	}()
	synctest.Wait()
}

func state(t *throttle.Ticket) throttle.State {
	s, _ := t.Status()
	return s
}

func TestAMusterIsOverOnceAllHaveCome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, tickets := musterOf(created("a"), created("b"), created("c"), &api.Container{Id: "d", State: api.ContainerState_CONTAINER_RUNNING})
		go func() { assert.NoError(t, m.hold(t.Context())) }()
		m.arrives(tickets["c"])
		m.arrives(tickets["b"])
		assert.Equal(t, throttle.Waiting, state(tickets["b"]))
		assert.True(t, m.on())
		m.miss("a")
		synctest.Wait()
		assert.False(t, m.on())
		assert.Equal(t, throttle.Starting, state(tickets["b"]), "it is before c")
		assert.Equal(t, throttle.Waiting, state(tickets["c"]))
	})
}

func TestAMusterWaitsForNobodyForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, tickets := musterOf(created("a"), created("b"))
		m.arrives(tickets["b"])
		time.Sleep(time.Hour)
		assert.Equal(t, throttle.Waiting, state(tickets["b"]), "the gate is not open yet")
		go func() { assert.NoError(t, m.hold(t.Context())) }()
		time.Sleep(musterMost)
		synctest.Wait()
		assert.Equal(t, throttle.Starting, state(tickets["b"]))
		m.arrives(tickets["a"])
		m.expect([]*api.Container{created("z")}) // the runtime was restarted: those who wait here are here
		assert.False(t, m.on())
	})
}

func TestAMusterIsLeftByThoseWhoCannotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, tickets := musterOf(created("a"), created("b"))
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan bool, 1)
		go func() { left <- m.join(ctx, tickets["a"], "a") }()
		synctest.Wait()
		cancel()
		assert.False(t, <-left)
		m.arrives(tickets["b"])
		assert.Equal(t, throttle.Starting, state(tickets["b"]), "a is not attended")
	})
}

func TestWithoutContainersThatWaitThereIsNoMuster(t *testing.T) {
	t.Parallel()
	m, tickets := musterOf()
	require.NoError(t, m.hold(t.Context()))
	assert.False(t, m.on())
	assert.False(t, m.join(t.Context(), tickets["a"], "a"))
}

// The first listing of the runtime may have failed.
func TestAMusterThatIsCalledAfterItsTimeIsOver(t *testing.T) {
	t.Parallel()
	m := newMuster(func() []string { return nil })
	m.most = 0
	require.NoError(t, m.hold(t.Context()))
	m.expect([]*api.Container{created("a")})
	require.False(t, m.on())
	l := throttle.New(time.Now(), throttle.Settings{})
	assert.False(t, m.join(t.Context(), l.Join(time.Now(), throttle.Request{UID: "b"}), "b"), "nobody is held up")
}
