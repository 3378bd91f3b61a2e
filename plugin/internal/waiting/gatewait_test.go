package waiting

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/starts"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// A pod's turn and the replacement of its container can come at once.
func TestAHookWhoseContainerIsGoneStartsNothingOnItsTurn(t *testing.T) {
	t.Parallel()
	c := aChooser(Options{})
	now := time.Now()
	p, gone := c.enters("pod")
	require.True(t, p.TryStart(now).Granted)
	assert.Equal(t, gate.Verdict{Go: true, Reason: reasons.WithinLimits}, decided(p.Look(now), isClosed(p.Gone)))
	close(gone)
	assert.Equal(t, gate.Verdict{Reason: gate.Replaced}, decided(p.Look(now), isClosed(p.Gone)))

	deleted, gone := c.enters("deleted")
	close(gone)
	c.o.Starts.PodChanged(now, podwatch.Pod{UID: "deleted"}, true)
	assert.Equal(t, gate.Verdict{Reason: reasons.Deleted}, decided(deleted.Look(now), isClosed(deleted.Gone)))
}

// enters returns a process of a pod that joins the queue, and what closes when its container is gone.
func (c *Chooser) enters(uid string) (p starts.Process, gone chan struct{}) {
	now := time.Now()
	p, _ = c.o.Starts.EnterRoom(now, starts.Identity{UID: uid, Namespace: "default", Name: uid}, podwatch.Pod{}, now, time.Time{}, true)
	gone = make(chan struct{})
	p.Gone = gone
	return p, gone
}

// A deadline can come together with the replacement of the container, or with the deletion of the pod.
func TestAHookWhoseContainerIsGoneStartsNothingAtItsDeadline(t *testing.T) {
	t.Parallel()
	now := time.Now()
	c := aChooser(Options{})
	p, gone := c.enters("pod")
	there := p
	there.Gone = nil
	close(gone)
	atDeadline := func(p starts.Process) gate.Verdict {
		ends := func(now starts.Outlook, _ bool) (gate.Verdict, bool) { return c.Gate.ended(now, p) }
		v, err := await(t.Context(), gate.Hello{Deadline: now}, p, nil, nil, ends, func() gate.Verdict { return c.Gate.expire(p) })
		require.NoError(t, err)
		return v
	}
	assert.Equal(t, gate.Verdict{Reason: gate.Replaced}, atDeadline(p))
	assert.Equal(t, throttle.Waiting, p.Look(now).State, "the pod keeps its place")
	assert.Equal(t, gate.Verdict{Go: true, Reason: reasons.WithinLimits}, atDeadline(there))
	deleted, _ := c.enters("deleted")
	c.o.Starts.PodChanged(now, podwatch.Pod{UID: "deleted"}, true)
	assert.Equal(t, gate.Verdict{Reason: reasons.Deleted}, atDeadline(deleted))
}

func TestANewerContainerReplacesTheWaitingOne(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		holder := n.occupy("holder")
		p := n.pod("twice").runs()
		older := p.waits("app")
		arrived := p.view().Arrived
		newer := p.makes("app")
		assert.Equal(t, gate.Verdict{Reason: gate.Replaced}, older.result())
		assert.Equal(t, arrived, p.view().Arrived, "the pod keeps its place")
		hook := newer.hookAsks()
		assert.False(t, hook.over())
		holder.getsReady()
		assert.Equal(t, gate.Verdict{Go: true, Reason: reasons.WithinLimits}, hook.result())
	})
}

// A hook may end before its answer reaches it. Then no process starts, and the slot is free once the container is removed.
func TestALostGoGivesTheSlotToTheNextPod(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		holder := n.occupy("holder")
		p := n.pod("lost").runs()
		c := p.makes("app")
		hook := c.hookAsks()
		holder.getsReady()
		require.True(t, hook.result().Go)
		other := n.pod("other").runs().waits("app")
		c.isRemoved()
		assert.True(t, other.result().Go)
		again := p.waits("app")
		n.o.Starts.PodChanged(time.Now(), podwatch.Pod{UID: "other"}, true)
		assert.True(t, again.result().Go)
	})
}

func TestAHookIsGivenAllThatItNeeds(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.occupy("holder")
		c := n.pod("waits").runs().makes("app")
		socket, hello, turn, cgroup, err := wire.ParseArgv(c.hook.Args[1:])
		require.NoError(t, err)
		assert.Equal(t, n.o.Gate.Path, c.hook.Path)
		assert.Equal(t, n.o.Gate.Socket, socket)
		assert.Equal(t, []string{"waits", c.GetId(), "default/waits"}, []string{hello.PodUID, hello.ContainerID, hello.Name})
		assert.WithinDuration(t, time.Now().Add(n.o.Gate.Timeout), hello.Deadline, time.Second)
		assert.WithinDuration(t, c.pod.view().Arrived, hello.Since, time.Millisecond)
		assert.Equal(t, "/kubepods/"+c.GetId(), cgroup, "if the runtime is killed, the hook removes this cgroup")
		assert.True(t, turn.LeaveAt.After(time.Now()) && !turn.LeaveAt.After(hello.Deadline))
		assert.Nil(t, c.hook.GetTimeout(), "when a hook times out, the runtime lets the start fail")
	})
}
