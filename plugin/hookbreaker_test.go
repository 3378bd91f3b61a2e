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
var triesLate = tuned(func(p *pacer) { p.gate.hooks.first = openMost })

// loses has a container of a pod of its own come to nothing with a hook.
func (b *hookBreaker) loses(now time.Time, id string) string {
	b.begins(now, id, "u"+id)
	return b.gone(now, id)
}

// Where hooks never work, ever fewer containers find that out, one at a time.
func TestTheBreakerOpensForLongerEachTimeAndOneContainerTries(t *testing.T) {
	t.Parallel()
	b := newHookBreaker()
	now := now0
	for i, minutes := range []int{1, 2, 4, 8, 10, 10, 10} {
		id, pause := strconv.Itoa(i), time.Duration(minutes)*time.Minute
		b.begins(now, id, "u"+id)
		if i > 0 {
			assert.NotEmpty(t, b.bars(now, "other"), "another one tries")
		}
		require.Contains(t, b.gone(now, id), "reject_oci_hook_adjustment")
		assert.Empty(t, b.gone(now, id), "said once")
		assert.NotEmpty(t, b.bars(now.Add(pause-1), "other"), pause)
		now = now.Add(pause)
		require.Empty(t, b.bars(now, "other"), pause)
		require.NotEmpty(t, b.bars(now, "u"+id), "no pod fails twice")
		require.NotEmpty(t, b.opened(), "it is known no better")
	}
	b.begins(now, "works", "u")
	b.contact("works")
	assert.Empty(t, b.bars(now, "other"), "all is well")
	assert.Empty(t, b.opened())
	assert.NotEmpty(t, b.bars(now, "u1"))
	b.forget("u1")
	assert.Empty(t, b.bars(now, "u1"))
}

func TestATryOfWhichNothingIsHeardMakesWayForAnother(t *testing.T) {
	t.Parallel()
	b := newHookBreaker()
	require.NotEmpty(t, b.loses(now0, "1"))
	now := now0.Add(openFirst)
	b.begins(now, "2", "u2")
	b.connected() // what became of it was not told
	assert.NotEmpty(t, b.bars(now.Add(openFirst-1), "u3"))
	assert.Empty(t, b.bars(now.Add(openFirst), "u3"))
	assert.Empty(t, b.gone(now, "2"))
}

func TestWhereHooksWorkOneFailureSaysNothing(t *testing.T) {
	t.Parallel()
	b := newHookBreaker()
	b.begins(now0, "waits", "u")
	b.contact("waits")
	assert.Empty(t, b.gone(now0, "waits"), "the end of a container that waited")
	assert.Empty(t, b.gone(now0, "no hook"))
	assert.Empty(t, b.loses(now0, "1"))
	assert.Empty(t, b.bars(now0, "u2"))
	assert.NotEmpty(t, b.bars(now0, "u1"))
	b.contact("another")
	assert.Empty(t, b.loses(now0, "2"))
	assert.NotEmpty(t, b.loses(now0, "3"))
	assert.NotEmpty(t, b.bars(now0, "u4"))
}

// Two that come to nothing in the same moment are one failure, not two.
func TestWhatBeganBeforeTheBreakerOpenedDoesNotProlongThat(t *testing.T) {
	t.Parallel()
	b := newHookBreaker()
	b.begins(now0, "c1", "u1")
	b.begins(now0, "c2", "u2")
	b.begins(now0, "c3", "u3")
	require.NotEmpty(t, b.gone(now0, "c1"))
	assert.Empty(t, b.gone(now0.Add(time.Second), "c2"))
	assert.Empty(t, b.bars(now0.Add(openFirst), "u9"))
	b.contact("c3")
	assert.Empty(t, b.bars(now0, "u9"), "a hook works after all")
}

// The host executes hooks, and none finds the daemon: in the DaemonSet, another folder of
// the host is mounted as its run directory.
func TestHooksThatDoNotFindTheDaemonOpenTheBreaker(t *testing.T) {
	t.Parallel()
	b := newHookBreaker()
	start := func(now time.Time, id string) string {
		b.begins(now, id, "u"+id)
		return b.started(now, id)
	}
	assert.Empty(t, b.started(now0, "no hook"))
	assert.Contains(t, start(now0, "1"), "run directory")
	now := now0.Add(openFirst)
	require.Empty(t, b.bars(now, "u1"), "one tries again, and no container has failed")
	assert.Contains(t, start(now, "2"), "run directory")
	assert.NotEmpty(t, b.bars(now.Add(2*openFirst-1), "u9"), "for twice as long")
	b.contact("one of an earlier daemon")
	assert.Empty(t, b.bars(now, "u9"))
	assert.Empty(t, start(now, "3"), "the daemon can be found: this one has another cause")
	assert.Empty(t, b.opened())
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
	a := pods[0].starts("app")
	require.Error(t, a.result())
	require.NoError(t, a.ctr.Remove(n.ctx))
	assert.Contains(t, n.p.gate.off(), "can the host execute the hook?")
	for _, p := range pods {
		_, err := p.create("app")
		require.ErrorContains(t, err, "kubelet tries again")
	}
	holder.getsReady()
	pods[0].startsNow("app")
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
