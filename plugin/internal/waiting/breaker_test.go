package waiting

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

var now0 = time.Unix(1000, 0)

// gone records that a container ended, and returns the cause if that trips the breaker.
func (b *breaker) gone(now time.Time, id string) string { return b.tripsBy(now, id, causeLost) }

// started is gone for a container that started.
func (b *breaker) started(now time.Time, id string) string { return b.tripsBy(now, id, causeSilent) }

func (b *breaker) tripsBy(now time.Time, id, cause string) string {
	if b.trips(now, id, cause) {
		return b.tripped()
	}
	return ""
}

// hooks gives a container of a new pod, in a namespace of its own, a hook.
func (b *breaker) hooks(now time.Time, id string) { b.begins(now, id, hooked{"u" + id, "ns" + id}) }

// loses makes a container of a new pod, in a namespace of its own, fail with a hook.
func (b *breaker) loses(now time.Time, id string) string {
	b.hooks(now, id)
	return b.gone(now, id)
}

// If hooks never work, fewer and fewer containers find that out, one at a time.
func TestTheBreakerOpensForLongerEachTimeAndOneContainerTries(t *testing.T) {
	t.Parallel()
	b := newBreaker(0)
	require.Empty(t, b.loses(now0, "first"))
	now := now0
	for i, minutes := range []int{1, 2, 4, 8, 10, 10, 10} {
		id, pause := strconv.Itoa(i), time.Duration(minutes)*time.Minute
		b.hooks(now, id)
		if i > 0 {
			assert.NotEmpty(t, b.bars(now, "other"), "another container tries already")
		}
		require.Contains(t, b.gone(now, id), "reject_oci_hook_adjustment")
		assert.Empty(t, b.gone(now, id), "this is logged once")
		assert.NotEmpty(t, b.bars(now.Add(pause-1), "other"), pause)
		now = now.Add(pause)
		require.Empty(t, b.bars(now, "other"), pause)
		require.NotEmpty(t, b.bars(now, "u"+id), "no pod fails twice")
		require.NotEmpty(t, b.tripped(), "the state of the hooks is not known better")
	}
	b.hooks(now, "works")
	b.contact("works")
	assert.Empty(t, b.bars(now, "other"), "hooks work again")
	assert.Empty(t, b.tripped())
	assert.NotEmpty(t, b.bars(now, "u1"))
	b.forget("u1")
	assert.Empty(t, b.bars(now, "u1"))
	assert.Empty(t, b.loses(now, "once"))
	assert.NotEmpty(t, b.loses(now, "twice"))
	assert.Empty(t, b.bars(now.Add(tripsFirst), "other"), "since hooks worked, it trips for the first time")
}

// A controller may delete each pod that fails.
func TestTheDeletionOfPodsThatFailedDoesNotResetTheBreaker(t *testing.T) {
	t.Parallel()
	b := newBreaker(0)
	require.Empty(t, b.loses(now0, "first"))
	now := now0
	for i, minutes := range []int{1, 2, 4, 8, 10, 10} {
		id, pause := strconv.Itoa(i), time.Duration(minutes)*time.Minute
		require.NotEmpty(t, b.loses(now, id))
		for _, uid := range []string{"ufirst", "u" + id} {
			b.forget(uid)
		}
		assert.NotEmpty(t, b.bars(now.Add(pause-1), "other"), pause)
		b.explained("other", "its mount failed")
		assert.NotEmpty(t, b.bars(now.Add(pause-1), "other"), pause)
		now = now.Add(pause)
		require.Empty(t, b.bars(now, "other"), pause)
	}
	b.hooks(now, "works")
	b.contact("works")
	assert.Empty(t, b.tripped())
}

func TestATryWithoutAResultMakesWayForAnother(t *testing.T) {
	t.Parallel()
	b := newBreaker(0)
	b.loses(now0, "0")
	require.NotEmpty(t, b.loses(now0, "1"))
	now := now0.Add(tripsFirst)
	b.hooks(now, "2")
	b.connected() // the result was not reported
	assert.NotEmpty(t, b.bars(now.Add(tripsFirst-1), "u3"))
	assert.Empty(t, b.bars(now.Add(tripsFirst), "u3"))
	assert.Empty(t, b.gone(now, "2"))
}

func TestOneFailureAmongWorkingHooksHasNoEffect(t *testing.T) {
	t.Parallel()
	b := newBreaker(0)
	b.hooks(now0, "waits")
	b.contact("waits")
	assert.Empty(t, b.gone(now0, "waits"), "a container that waited may end")
	assert.Empty(t, b.gone(now0, "no hook"))
	assert.Empty(t, b.loses(now0, "1"))
	assert.Empty(t, b.bars(now0, "u2"))
	assert.NotEmpty(t, b.bars(now0, "u1"))
	b.contact("another")
	assert.Empty(t, b.loses(now0, "2"))
	assert.NotEmpty(t, b.loses(now0, "3"))
	assert.NotEmpty(t, b.bars(now0, "u4"))
}

// Nothing may say why containers fail, such as those of a Deployment with a mount that cannot be made.
func TestThePodsOfOneNamespaceKeepNoOtherOutOfTheGate(t *testing.T) {
	t.Parallel()
	for _, worked := range []bool{false, true} {
		b := newBreaker(0)
		if worked {
			b.contact("a hook works")
		}
		now := now0
		for i := range 600 {
			id, of := strconv.Itoa(i), hooked{"u" + strconv.Itoa(i%10), "tenant"}
			now = now.Add(6 * time.Second)
			if b.bars(now, of.uid) != "" {
				continue // it is refused
			}
			b.begins(now, id, of)
			assert.Empty(t, b.gone(now, id))
			assert.Empty(t, b.bars(now, "other"))
		}
		assert.NotEmpty(t, b.bars(now, "u1"), "it fails once")
		assert.NotEmpty(t, b.loses(now, "of another namespace"))
	}
}

// kubelet says why: another hook or a mount failed, or another plugin rejected the container.
func TestAFailureThatIsNotTheHooksDoesNotCount(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.configure("spec: {}", throttle.Settings{MaxConcurrent: 4})
		for _, name := range []string{"a", "b", "c", "d"} {
			n.occupy(name)
		}
		lost := func(name string) (*pod, container) {
			p := n.inAnother(name)
			return p, p.runs().makes("app")
		}
		reports := func(p *pod, c container, fault func(*podwatch.Container)) {
			p.changes(func(pod *podwatch.Pod) {
				app := podwatch.Container{Kind: podwatch.App, ID: c.GetId()}
				fault(&app)
				pod.Containers = map[string]podwatch.Container{"app": app}
			})
			known, _ := n.watch.Get(p.uid)
			n.Gate.PodChanged(known)
		}
		badMount := func(c *podwatch.Container) { c.StartFailed, c.OtherFault = true, true }
		hookFailed := func(c *podwatch.Container) { c.StartFailed = true }

		p, c := lost("first")
		reports(p, c, badMount)
		c.isRemoved()
		assert.Empty(t, n.Gate.offFor(time.Now(), p.uid), "its next container may wait in the gate")
		p, c = lost("second")
		c.isRemoved()
		assert.NotEmpty(t, n.Gate.offFor(time.Now(), p.uid))
		third, its := lost("third")
		its.isRemoved()
		assert.Contains(t, n.Gate.Off(), "hooks did not contact the daemon", "two pods, and nothing says why")
		reports(p, c, badMount)
		assert.Empty(t, n.Gate.Off(), "now it does")
		n.Gate.PodChanged(podwatch.Pod{UID: third.uid, Deleting: true})
		third.isDeleted()
		for _, name := range []string{"fourth", "fifth"} {
			assert.Empty(t, n.Gate.Off())
			p, c = lost(name)
			reports(p, c, hookFailed)
		}
		assert.Contains(t, n.Gate.Off(), "hooks did not contact the daemon", "though the runtime has not removed the containers")
	})
}

// Two failures at the same moment count as one.
func TestEarlierFailuresDoNotProlongTheTrippedBreaker(t *testing.T) {
	t.Parallel()
	b := newBreaker(0)
	b.loses(now0, "c0")
	for _, id := range []string{"c1", "c2", "c3"} {
		b.hooks(now0, id)
	}
	require.NotEmpty(t, b.gone(now0, "c1"))
	assert.Empty(t, b.gone(now0.Add(time.Second), "c2"))
	assert.Empty(t, b.bars(now0.Add(tripsFirst), "u9"))
	b.contact("c3")
	assert.Empty(t, b.bars(now0, "u9"), "a hook works after all")
}

// The host executes hooks, but they do not find the daemon. In a DaemonSet, this happens if another folder of the
// host is mounted as its run folder.
func TestHooksThatDoNotFindTheDaemonTripTheBreaker(t *testing.T) {
	t.Parallel()
	b := newBreaker(0)
	start := func(now time.Time, id string) string {
		b.hooks(now, id)
		return b.started(now, id)
	}
	assert.Empty(t, b.started(now0, "no hook"))
	assert.Contains(t, start(now0, "1"), "run folder")
	now := now0.Add(tripsFirst)
	require.Empty(t, b.bars(now, "u1"), "one container tries again, and none has failed")
	assert.Contains(t, start(now, "2"), "run folder")
	assert.NotEmpty(t, b.bars(now.Add(2*tripsFirst-1), "u9"), "the breaker is tripped for twice as long")
	b.contact("a hook of an earlier daemon")
	assert.Empty(t, b.bars(now, "u9"))
	assert.Empty(t, start(now, "3"), "hooks find the daemon, so this failure has another cause")
	assert.Empty(t, b.tripped())
	assert.Contains(t, start(now, "4"), "hook of this version", "two in a row")
	b.contact("a hook works after all")
	assert.Empty(t, start(now, "5"))
}

func TestTheBreakerForgetsAPodThatIsGone(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.occupy("holder")
		p := n.pod("gone").runs()
		p.makes("app").isRemoved()
		require.Contains(t, n.Gate.breaker.failed, p.uid, "its hook did not come")
		n.o.Starts.PodChanged(time.Now(), podwatch.Pod{UID: p.uid}, true)
		assert.Empty(t, n.Gate.breaker.failed)
	})
}
