package plugin

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

var now0 = time.Unix(1000, 0)

// triesLate keeps a slow moment from being the time to try hooks again.
var triesLate = tuned(func(p *pacer) { p.gate.trial.first = givenUpMost })

func TestOneRejectedContainerEndsTheUseOfHooks(t *testing.T) {
	t.Parallel()
	h := newHookTrial()
	h.connected(processOfNode{pid: 1, started: 1})
	h.begins(now0, "c1", "u1", "app", true)
	assert.Contains(t, h.gone(now0, "c1"), "reject_oci_hook_adjustment")
	assert.NotEmpty(t, h.bars(now0, ""))
	assert.Empty(t, h.gone(now0, "c1"), "said once")

	// The same container is made without it: the hook was the cause.
	h.begins(now0, "c2", "u1", "app", false)
	h.made("c2")
	h.begins(now0, "c3", "u1", "app", false)
	h.gone(now0, "c3")
	assert.NotEmpty(t, h.bars(now0.Add(givenUpFor-1), "u2"))

	h.connected(processOfNode{pid: 1, started: 1})
	assert.NotEmpty(t, h.bars(now0, "u2"), "the same runtime rejects hooks still")
	h.connected(processOfNode{pid: 2, started: 9})
	assert.Empty(t, h.bars(now0, "u2"), "another one may take them")
	assert.NotEmpty(t, h.bars(now0, "u1"), "but no container fails twice")
	h.forget("u1")
	assert.Empty(t, h.bars(now0, "u1"))
}

// A runtime that failed once, for any reason, gets another chance soon; one that never
// takes hooks is asked ever more seldom, each time by one container.
func TestHooksThatWereRejectedAreTriedAgain(t *testing.T) {
	t.Parallel()
	h := newHookTrial()
	now := now0
	for i, minutes := range []int{1, 2, 4, 8, 10, 10, 10} {
		id, pause := strconv.Itoa(i), time.Duration(minutes)*time.Minute
		h.begins(now, id, "u"+id, "app", true)
		if i > 0 {
			assert.NotEmpty(t, h.bars(now, "other"), "another one tries")
		}
		require.NotEmpty(t, h.gone(now, id))
		h.begins(now, id+"again", "u"+id, "app", false)
		h.made(id + "again")
		h.started(now, id+"again")
		assert.NotEmpty(t, h.bars(now.Add(pause-1), "other"), pause)
		now = now.Add(pause)
		require.Empty(t, h.bars(now, "other"), pause)
		require.NotEmpty(t, h.bars(now, "u"+id), "no container fails twice")
		require.NotEmpty(t, h.givenUp(), "it is known no better")
	}

	h.begins(now, "heard", "u", "app", true)
	h.made("heard")
	assert.NotEmpty(t, h.bars(now, "other"), "that it was made does not say that the host can execute the hook")
	h.heard("heard")
	assert.Empty(t, h.bars(now, "other"), "all is well")
	assert.Empty(t, h.givenUp())
	assert.Zero(t, h.pause)
}

func TestATryOfWhichNothingIsHeardMakesWayForAnother(t *testing.T) {
	t.Parallel()
	h := newHookTrial()
	h.begins(now0, "c1", "u1", "app", true)
	require.NotEmpty(t, h.gone(now0, "c1"))
	now := now0.Add(givenUpFor)
	h.begins(now, "c2", "u2", "app", true)
	assert.NotEmpty(t, h.bars(now.Add(givenUpFor-1), "u3"))
	assert.Empty(t, h.bars(now.Add(givenUpFor), "u3"))
}

func TestAContainerThatFailsWithoutTheHookTooAcquitsIt(t *testing.T) {
	t.Parallel()
	h := newHookTrial()
	h.begins(now0, "c1", "u1", "app", true)
	require.NotEmpty(t, h.gone(now0, "c1"))
	h.begins(now0, "other", "u2", "app", false)
	h.gone(now0, "other") // says nothing of the first
	assert.NotEmpty(t, h.bars(now0, ""))
	h.begins(now0, "c2", "u1", "app", false)
	assert.Empty(t, h.gone(now0, "c2"))
	assert.Empty(t, h.bars(now0, "u1"))
}

func TestAPodThatIsGoneBeforeItsContainerIsMadeAgainAcquitsHooks(t *testing.T) {
	t.Parallel()
	h := newHookTrial()
	h.begins(now0, "c1", "u1", "app", true)
	require.NotEmpty(t, h.gone(now0, "c1"))
	h.forget("u2")
	require.NotEmpty(t, h.bars(now0, ""), "another pod says nothing of it")
	h.forget("u1")
	assert.Empty(t, h.bars(now0, ""), "the deletion may have been the cause")
	h.begins(now0, "c2", "u2", "app", true)
	assert.NotEmpty(t, h.gone(now0, "c2"), "one that rejects hooks rejects the next")
}

func TestARuntimeThatTakesHooksRejectsThemForOnePodOnly(t *testing.T) {
	t.Parallel()
	h := newHookTrial()
	h.begins(now0, "c1", "u1", "app", true)
	h.made("c1")
	h.heard("c1")
	assert.Empty(t, h.gone(now0, "c1"), "the end of a container that waited")
	h.begins(now0, "c2", "u2", "app", true)
	assert.Empty(t, h.gone(now0, "c2"))
	assert.Empty(t, h.bars(now0, "u1"))
	assert.NotEmpty(t, h.bars(now0, "u2"))
}

// makes has a container with a hook made, of a pod of its own.
func (h *hookTrial) makes(now time.Time, id string) {
	h.begins(now, id, "u"+id, "app", true)
	h.made(id)
}

func TestHooksThatAreNeverHeardOfAreGivenUpForATime(t *testing.T) {
	t.Parallel()
	h := newHookTrial()
	lose := func(now time.Time, id string) string {
		h.makes(now, id)
		return h.gone(now, id)
	}
	assert.Empty(t, lose(now0, "1"))
	h.makes(now0, "2")
	h.heard("2") // another one did its work
	assert.Empty(t, lose(now0, "3"))
	h.started(now0, "no hook") // says nothing of hooks
	assert.Contains(t, lose(now0, "4"), "never heard of")
	now := now0.Add(givenUpFor)
	assert.NotEmpty(t, h.bars(now.Add(-1), ""))
	assert.Empty(t, h.bars(now, ""))
	assert.NotEmpty(t, h.bars(now, "u4"), "no container fails twice")
	assert.Contains(t, lose(now, "5"), "never heard of", "one is enough to know that it is as before")
	h.started(now, "no hook")
	now = now.Add(2 * givenUpFor)
	assert.NotEmpty(t, h.bars(now.Add(-1), ""))
	assert.Empty(t, h.bars(now, ""))
}

// Two that come to nothing in the same moment are one failure, not two.
func TestWhatBeganBeforeHooksWereGivenUpDoesNotProlongThat(t *testing.T) {
	t.Parallel()
	h := newHookTrial()
	h.begins(now0, "c1", "u1", "app", true)
	h.begins(now0, "c2", "u2", "app", true)
	require.NotEmpty(t, h.gone(now0, "c1"))
	assert.Empty(t, h.gone(now0.Add(time.Second), "c2"))
	assert.Empty(t, h.bars(now0.Add(givenUpFor), "u3"))
}

func TestAHookThatIsHeardOfEndsTheTimeForWhichHooksAreGivenUp(t *testing.T) {
	t.Parallel()
	h := newHookTrial()
	h.begins(now0, "c1", "u1", "app", true)
	h.begins(now0, "c2", "u2", "app", true)
	require.NotEmpty(t, h.gone(now0, "c1"))
	h.heard("c2")
	assert.Empty(t, h.bars(now0, "u3"))
}

func TestOnARuntimeThatRejectsHooksOneContainerFailsOnce(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, triesLate, onRuntime(func(o *runtimetest.Options) { o.RejectHooks = true }))
	require.Empty(t, n.p.gate.off(), "nobody can know before the first hook")
	holder := n.occupy("holder")
	first, second := n.pod("first").runs(), n.pod("second").runs()
	_, err := first.create("app")
	require.ErrorContains(t, err, "hook")
	require.NotContains(t, err.Error(), "kubelet tries again", "the runtime's own error")
	assert.Contains(t, n.p.gate.off(), "reject_oci_hook_adjustment")
	for _, p := range []*testPod{first, second, first} {
		_, err = p.create("app")
		require.ErrorContains(t, err, "kubelet tries again", "refused by the daemon")
	}

	_, err = n.rt.DropPlugins()
	require.NoError(t, err)
	n.connected()
	_, err = second.create("app")
	require.ErrorContains(t, err, "kubelet tries again", "the same runtime is not tried again")
	holder.getsReady()
	first.startsNow("app")
	first.becomes(throttle.Starting, throttle.WithinLimits)
	first.getsReady()
	second.startsNow("app")
}

func TestAHookThatTheHostCannotExecuteIsGivenUp(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, triesLate)
	holder := n.occupy("holder")
	// It looks like a program, as on a host that is made for other processors.
	n.p.options.GatePath = brokenProgram(t)
	pods := []*testPod{n.pod("a").runs(), n.pod("b").runs()}
	for _, p := range pods {
		a := p.starts("app")
		require.Error(t, a.result())
		require.NoError(t, a.ctr.Remove(n.ctx))
	}
	assert.Contains(t, n.p.gate.off(), "never heard of")
	for _, p := range pods {
		_, err := p.create("app")
		require.ErrorContains(t, err, "kubelet tries again")
	}
	holder.getsReady()
	pods[0].startsNow("app")
}

// The host executes hooks, and none finds the daemon: in the DaemonSet, another folder of
// the host is mounted as its run directory.
func TestHooksThatDoNotFindTheDaemonAreGivenUp(t *testing.T) {
	t.Parallel()
	h := newHookTrial()
	start := func(now time.Time, id string) string {
		h.makes(now, id)
		return h.started(now, id)
	}
	h.makes(now0, "beside")
	assert.Contains(t, start(now0, "1"), "run directory")
	assert.Empty(t, h.started(now0, "beside"), "said once")
	assert.NotEmpty(t, h.bars(now0.Add(givenUpFor-1), "u9"))
	now := now0.Add(givenUpFor)
	require.Empty(t, h.bars(now, "u1"), "one tries again, and no container has failed")
	assert.Contains(t, start(now, "2"), "run directory")
	assert.NotEmpty(t, h.bars(now.Add(2*givenUpFor-1), "u9"), "for twice as long")

	h.heard("one of an earlier daemon")
	assert.Empty(t, h.bars(now, "u9"))
	assert.Empty(t, start(now, "3"), "the daemon can be found: this one has another cause")
	assert.Empty(t, h.givenUp())
}

func TestWhereNoHookComesToTheGatePodsAreRefused(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, triesLate)
	holder := n.occupy("holder")
	n.p.options.GatePath = "/bin/true"
	n.pod("unpaced").runs().startsNow("app")
	assert.Contains(t, n.p.gate.off(), "run directory")
	refused := n.pod("refused").runs()
	_, err := refused.create("app")
	require.ErrorContains(t, err, "kubelet tries again")
	holder.getsReady()
}

func TestTheGateIsNotUsedInVirtualMachines(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	n.occupy("holder")
	p := n.pod("vm")
	p.spec.RuntimeHandler = "kata-qemu"
	p.runs()
	_, err := p.create("app")
	require.ErrorContains(t, err, "kubelet tries again")
	n.pod("process").runs().waitsAtGate("app")
}

func TestAnOldSandboxBarsTheGateBesideASidecarAlsoWithAlways(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, with(func(o *Options) { o.Gate = GateAlways }),
		onRuntime(func(o *runtimetest.Options) { o.Version = "v2.2.5" }))
	p := n.pod("crashed", containers(sidecarAndApp)).runs()
	p.startsNow("sidecar")
	p.startsNow("app")
	p.getsReady()
	p.becomes(throttle.Started, throttle.Ready)
	holder := n.occupy("holder")
	alone := n.pod("alone").runs().waitsAtGate("app") // as asked for by always
	p.crash("app")
	_, err := p.create("app")
	require.ErrorContains(t, err, "kubelet tries again")
	holder.getsReady()
	alone.succeeds()
}
