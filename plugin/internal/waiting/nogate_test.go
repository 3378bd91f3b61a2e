package waiting

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// standalone is a daemon without an API server: it knows no pod, and a pod is gone with its sandbox.
func standalone(o *Options) { o.Pods = nil }

func TestTheGateIsUsedWithAnUnknownRuntimeWhenAlwaysIsAsked(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.Connected("cri-o", "1.35.0", 0)
		first := n.stranger("first").runs()
		first.starts("app")
		hook := n.stranger("second").runs().waits("app") // though its restart policy is unknown
		n.o.Starts.SandboxRemoved(first.sandbox)
		assert.True(t, hook.result().Go)
	}, gateUse(GateAlways), standalone)
}

func TestTheGateIsNotUsedInVirtualMachines(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.occupy("holder")
		vm := n.pod("vm")
		vm.sandbox.RuntimeHandler = "kata-qemu"
		_, err := vm.runs().create("app")
		require.ErrorIs(t, err, errWaiting)
		n.pod("process").runs().waits("app")
	})
}

// A hook that waits there would hold up the sidecar.
func TestAnOldSandboxBarsTheGateBesideASidecarAlsoWithAlways(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.Connected("containerd", "2.2.5", 0)
		p := n.pod("crashed", has(podwatch.Sidecar, "sidecar")).runs()
		p.starts("sidecar")
		app := p.starts("app")
		p.getsReady()
		require.Equal(t, throttle.Started, p.view().State)
		n.occupy("holder")
		n.pod("alone").runs().waits("app") // as --gate always demands
		app.exits()
		_, err := p.create("app")
		require.ErrorIs(t, err, errWaiting)
	}, gateUse(GateAlways))
}

// It may be the same runtime again, which rejects hooks.
func TestANewConnectionDoesNotUseTheGateAgain(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.occupy("holder")
		for _, name := range []string{"first", "of-another"} {
			n.inAnother(name).runs().makes("app").isRemoved() // the runtime rejects the hook
		}
		require.Contains(t, n.Gate.Off(), "reject_oci_hook_adjustment")
		second := n.pod("second").runs()
		for range 2 {
			_, err := second.create("app")
			require.ErrorIs(t, err, errWaiting)
			n.Connected("containerd", "2.4.2", 0)
		}
		n.passes(tripsFirst)
		second.waits("app")
		assert.Empty(t, n.Gate.Off(), "hooks work again")
	})
}
