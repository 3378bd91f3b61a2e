package waiting

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/starts"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// kubelet ends a pod only after the start of a waiting container has ended. So no pod may wait in the gate while the
// node is shut down.
func TestNoPodWaitsOnANodeThatShutsDown(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		holder := n.occupy("holder")
		waits := n.pod("waits").runs()
		hook, made, up := waits.waits("app"), n.pod("made").runs().makes("app"), n.pod("up").runs()
		roomed := n.pod("in the room", restarted("Never")).entersRoom()

		n.o.Starts.SetShutdown(true)
		for _, a := range []*asker{hook, made.hookAsks(), roomed, n.pod("late", restarted("Never")).entersRoom()} {
			assert.Equal(t, gate.Verdict{Reason: gate.NodeShutdown}, a.result(), "also a hook that comes now ends")
		}
		_, err := up.create("app")
		require.ErrorContains(t, err, "pod-pacemaker: not started: NodeShutdown (no pod starts any more)")
		require.ErrorContains(t, n.pod("new").run(), "not started: NodeShutdown")
		assert.Equal(t, "pod default/new is refused at the sandbox and does not start: NodeShutdown (no pod starts any more)", n.story("new")[0].Message)
		assert.Equal(t, "the node is being shut down", n.Gate.Off())

		holder.getsReady()
		n.passes(0)
		assert.Equal(t, throttle.Waiting, waits.view().State, "a free slot starts no pod")
		_, err = up.create("app")
		require.ErrorContains(t, err, string(gate.NodeShutdown), "a repeated request does not start it either")
	})
}

// A pod that need not wait starts on this node as on any other. So does a container of an admitted start.
func TestPodsThatNeedNotWaitStartOnANodeThatShutsDown(t *testing.T) {
	t.Parallel()
	onNode(t, func(_ *testing.T, n *node) {
		half := n.pod("half", has(podwatch.App, "beside")).runs()
		half.starts("app")
		n.o.Starts.SetShutdown(true)
		half.starts("beside")
		critical := n.stranger("critical")
		critical.sandbox.Namespace = "kube-system" // critical pods are exempt in this namespace
		critical.changes(func(pod *podwatch.Pod) {
			*pod = podwatch.Pod{UID: "critical", Namespace: "kube-system", Name: "critical", PriorityClassName: "system-node-critical"}
		})
		critical.runs().starts("app")
	})
}

// kubelet evicts a pod only after the start of the waiting container has ended. Then it continues with the other
// containers of the pod.
func TestNoPodWaitsInTheGateOfANodeWithAShortage(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		holder := n.occupy("holder")
		p := n.pod("waits", has(podwatch.App, "second", "third")).runs()
		hook, made := p.waits("app"), p.makes("second")
		roomed := n.pod("in the room", restarted("Never")).entersRoom()

		n.o.Starts.SetPressure(true)
		for _, a := range []*asker{hook, made.hookAsks()} {
			assert.Equal(t, gate.Verdict{Reason: gate.NodePressure}, a.result(), "also a hook that comes now ends")
		}
		_, err := p.create("third")
		require.ErrorIs(t, err, errWaiting)
		assert.Contains(t, n.Gate.Off(), "the node is short of memory, disk or process IDs")
		assert.Equal(t, throttle.Waiting, p.view().State, "the pod keeps its place")
		assert.False(t, roomed.over(), "the pod in the room has no sandbox that kubelet could evict")
		roomed.hangsUp()

		holder.getsReady()
		p.starts("app")
	})
}

func TestPodsWaitAgainOnceTheNodeHasRecovered(t *testing.T) {
	t.Parallel()
	for name, press := range map[string]func(*starts.Starts, bool){"shutdown": (*starts.Starts).SetShutdown, "shortage": (*starts.Starts).SetPressure} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onNode(t, func(t *testing.T, n *node) {
				holder := n.occupy("holder")
				p := n.pod("waits").runs()
				hook := p.waits("app")
				press(n.o.Starts, true)
				press(n.o.Starts, true)
				require.False(t, hook.result().Go)
				press(n.o.Starts, false)
				assert.Empty(t, n.Gate.Off())
				hook = p.waits("app")
				holder.getsReady()
				assert.True(t, hook.result().Go)
			})
		})
	}
}
