package plugin

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// A slot that became free while there was no daemon is the first waiter's, not
// that of the hook which happens to come back first.
func TestASlotThatIsFreeAfterARestartGoesToTheFirstInLine(t *testing.T) {
	t.Parallel()
	n := newNode(t, twoAtATime, tuned(func(p *pacer) { p.rejoin.within = patience }))
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

// frozen gives a pacer whose gate has just opened, and two tickets that wait for one slot.
func frozen(t *testing.T, ctrs ...*api.Container) (p *pacer, first, second *throttle.Ticket) {
	p = newPacer(Options{Log: discard()}, nil, newMetrics())
	p.limiter.Configure(time.Now(), throttle.Settings{MaxConcurrent: 1})
	first, second = p.limiter.Join(time.Now(), throttle.Request{UID: "a"}), p.limiter.Join(time.Now(), throttle.Request{UID: "b"})
	p.rejoin.expect(ctrs)
	p.limiter.Freeze()
	go func() { assert.NoError(t, p.thaw(t.Context())) }()
	return p, first, second
}

func state(t *throttle.Ticket) throttle.State {
	s, _ := t.Status()
	return s
}

func TestNobodyIsAdmittedUntilAllHooksAreBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, first, second := frozen(t, created("a"), created("b"), created("gone"), &api.Container{Id: "runs", State: api.ContainerState_CONTAINER_RUNNING})
		second.Wait(time.Now())
		p.rejoin.came("b")
		p.rejoin.came("gone")
		synctest.Wait()
		assert.Equal(t, throttle.Waiting, state(second))
		first.Wait(time.Now())
		p.rejoin.came("a")
		p.rejoin.came("a")
		synctest.Wait()
		assert.Equal(t, throttle.Starting, state(first), "it is before the other")
		assert.Equal(t, throttle.Waiting, state(second))
		p.rejoin.expect([]*api.Container{created("z")}) // the runtime was restarted: those who wait are here
		assert.Empty(t, p.rejoin.missing)
	})
}

func TestNobodyWaitsForLongForHooksThatDoNotComeBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, _, second := frozen(t, created("a"), created("b"))
		second.Wait(time.Now())
		time.Sleep(rejoinWithin - 1)
		synctest.Wait()
		assert.Equal(t, throttle.Waiting, state(second))
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		assert.Equal(t, throttle.Starting, state(second))
	})
}

func TestWithoutContainersThatWaitNobodyIsWaitedFor(t *testing.T) {
	t.Parallel()
	r := newRejoin()
	assert.False(t, isClosed(r.back), "the runtime has not told yet")
	r.expect(nil)
	assert.True(t, isClosed(r.back))
}
