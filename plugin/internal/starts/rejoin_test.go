package starts

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// The hook says by the wall clock since when it waits.
func TestAfterTheClockWasSetBackAHookThatOutlivedTheDaemonIsOfItsStart(t *testing.T) {
	t.Parallel()
	for _, since := range []time.Duration{-time.Minute, time.Minute} {
		onNode(t, func(_ *testing.T, n *node) {
			p := n.pod("p")
			p.sandbox.Id, p.sandbox.Pid = "sandbox", 7
			ctr := p.isMade("app")
			ctr.State = api.ContainerState_CONTAINER_CREATED
			n.lists([]*testPod{p}, ctr)
			p.step()
			n.EnterGate(time.Now(), Identity{UID: p.uid, Namespace: "default", Name: p.uid}, ctr.GetId(), time.Now().Add(since), time.Time{})
			p.is(throttle.Starting, reasons.WithinLimits)
			p.begins("app")
			p.getsReady()
			p.is(throttle.Started, reasons.Ready)
		})
	}
}

// created is a container whose hook may wait.
func created(id string) *api.Container {
	return &api.Container{Id: id, State: api.ContainerState_CONTAINER_CREATED}
}

// frozen returns a Starts whose gate has just opened, and two tickets that wait for one slot.
func frozen(t *testing.T, ctrs ...*api.Container) (p *Starts, first, second Ticket) {
	p = aStarts()
	p.ledger.limiter.Configure(time.Now(), throttle.Settings{MaxConcurrent: 1})
	arrives := func(uid string) Ticket {
		process, waits := p.EnterRoom(time.Now(), Identity{UID: uid}, podwatch.Pod{}, time.Now(), time.Time{}, true)
		assert.True(t, waits)
		return process.Ticket
	}
	first, second = arrives("a"), arrives("b")
	p.ledger.hooks.expect(ctrs)
	assert.True(t, p.Freeze())
	go func() { assert.NoError(t, p.Thaw(t.Context())) }()
	return p, first, second
}

func TestNoPodIsAdmittedUntilAllHooksAreBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, first, second := frozen(t, created("a"), created("b"), created("gone"), &api.Container{Id: "runs", State: api.ContainerState_CONTAINER_RUNNING})
		second.Wait(time.Now())
		p.ledger.hooks.isBack("b")
		p.ledger.hooks.isBack("gone")
		synctest.Wait()
		assert.Equal(t, throttle.Waiting, statusOf(second))
		first.Wait(time.Now())
		p.ledger.hooks.isBack("a")
		p.ledger.hooks.isBack("a")
		synctest.Wait()
		assert.Equal(t, throttle.Starting, statusOf(first), "it is before the second in the queue")
		assert.Equal(t, throttle.Waiting, statusOf(second))
		p.ledger.hooks.expect([]*api.Container{created("z")}) // the runtime was restarted, and the waiting pods are here
		assert.Empty(t, p.ledger.hooks.missing)
	})
}

func TestTheWaitForHooksThatDoNotComeBackIsShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, _, second := frozen(t, created("a"), created("b"))
		second.Wait(time.Now())
		time.Sleep(DefaultTiming().Rejoin - 1)
		synctest.Wait()
		assert.Equal(t, throttle.Waiting, statusOf(second))
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		assert.Equal(t, throttle.Starting, statusOf(second))
	})
}

func TestWithoutWaitingContainersThereIsNoWait(t *testing.T) {
	t.Parallel()
	r := &aStarts().ledger.hooks
	assert.False(t, closed(r.back), "the runtime has not listed its containers yet")
	r.expect(nil)
	assert.True(t, closed(r.back))
}

func statusOf(ticket Ticket) throttle.State {
	return Process{Ticket: ticket}.Look(time.Time{}).State
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
