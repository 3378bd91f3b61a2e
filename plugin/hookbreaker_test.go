package plugin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// triesLate makes the breaker try hooks again so late that the speed of the machine does not matter.
var triesLate = tuned(func(r *tuning) { r.firstTrip = 10 * time.Minute })

// hookAt sets another program as the hook.
func hookAt(path string) nodeOption { return with(func(o *Options) { o.GatePath = path }) }

func TestOnARuntimeThatRejectsHooksAPodOfEachOfTwoNamespacesFailsOnce(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, triesLate, onRuntime(func(o *runtimetest.Options) { o.RejectHooks = true }))
	require.Empty(t, n.d.waiting.Gate.Off(), "the fault is unknown before the first hook")
	holder := n.occupy("holder")
	first, second := n.pod("first"), n.pod("second")
	second.spec.Namespace = "another"
	var err error
	for _, p := range []*testPod{first, second} {
		_, err = p.runs().create("app")
		require.ErrorContains(t, err, "hook")
		require.NotContains(t, err.Error(), "kubelet tries again", "the error comes from the runtime")
	}
	assert.Contains(t, n.d.waiting.Gate.Off(), "reject_oci_hook_adjustment")
	third := n.pod("third").runs()
	for _, p := range []*testPod{first, second, third} {
		_, err = p.create("app")
		require.ErrorContains(t, err, "kubelet tries again", "the daemon refuses the container")
	}

	_, err = n.rt.DropPlugins()
	require.NoError(t, err)
	n.connected()
	_, err = third.create("app")
	require.ErrorContains(t, err, "kubelet tries again", "hooks are not tried again with the same runtime")
	holder.getsReady()
	first.startsNow("app")
	first.becomes(throttle.Starting, reasons.WithinLimits)
	first.getsReady()
	second.startsNow("app")
}

func TestPodsAreRefusedIfNoHookComesToTheGate(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, triesLate, hookAt("/bin/true"))
	holder := n.occupy("holder")
	n.pod("unpaced").runs().startsNow("app")
	assert.Contains(t, n.d.waiting.Gate.Off(), "run folder")
	refused := n.pod("refused").runs()
	_, err := refused.create("app")
	require.ErrorContains(t, err, "kubelet tries again")
	holder.getsReady()
}

// Its container cannot come to the gate any more, and that is no sign that hooks fail.
func TestTheGateForgetsADeletedPod(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, triesLate)
	n.occupy("holder")
	deleted := n.pod("deleted").runs()
	ctr := deleted.creates("app")
	n.pods.remove(deleted.uid)
	require.NoError(t, ctr.Remove(n.ctx))
	assert.Empty(t, n.d.waiting.Gate.Off())
}
