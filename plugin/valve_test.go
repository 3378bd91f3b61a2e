package plugin

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// kubelet ends a pod only after the start of a waiting container has ended. So no pod may wait in the gate while the node
// is shut down.
func TestNoPodWaitsAtTheGateOfANodeThatShutsDown(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	holder := n.occupy("holder")
	waits := n.pod("waits").runs()
	a := waits.waitsAtGate("app")
	made := n.pod("made").runs()
	ctr := made.creates("app")
	up := n.pod("up").runs()

	n.d.starts.Valve.ShutsDown(true)
	require.ErrorContains(t, a.result(), "NodeShutdown: the node is being shut down")
	require.ErrorContains(t, made.launches("app", ctr).result(), string(gate.NodeShutdown), "a hook that comes now ends, too")
	_, err := up.create("app")
	require.ErrorContains(t, err, "pod-pacemaker: not started: NodeShutdown (no pod starts any more)")
	require.ErrorContains(t, n.pod("new").run(), "not started: NodeShutdown")
	n.noHookIsLeft()
	assert.Equal(t, "the node is being shut down", n.d.waiting.Gate.Off())

	holder.getsReady()
	holder.becomes(throttle.Started, reasons.Ready)
	assert.Equal(t, throttle.Waiting, waits.is(), "a free slot starts no pod")
	_, err = up.create("app")
	require.ErrorContains(t, err, string(gate.NodeShutdown), "a repeated request does not start it either")
}

// A pod that need not wait starts on this node as on any other. So does a container of an admitted start.
func TestPodsThatNeedNotWaitStartOnANodeThatShutsDown(t *testing.T) {
	t.Parallel()
	n := newNode(t, twoAtATime)
	half := n.pod("half", func(pod *podwatch.Pod) {
		pod.Containers = containersNamed(podwatch.App, "app", "beside")
	}).runs()
	half.startsNow("app")
	n.d.starts.Valve.ShutsDown(true)
	half.startsNow("beside")
	critical := n.strangePod("critical")
	critical.spec.Namespace = "kube-system" // critical pods are exempt in this namespace
	critical.becomesKnown(func(pod *podwatch.Pod) { pod.PriorityClassName = "system-node-critical" })
	critical.runs().startsNow("app")
}

func TestACancelledShutdownIsOver(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	holder := n.occupy("holder")
	p := n.pod("waits").runs()
	a := p.waitsAtGate("app")
	n.d.starts.Valve.ShutsDown(true)
	require.ErrorContains(t, a.result(), string(gate.NodeShutdown))

	n.d.starts.Valve.ShutsDown(false)
	assert.Empty(t, n.d.waiting.Gate.Off())
	a = p.waitsAtGate("app")
	holder.getsReady()
	a.succeeds()
}

// In the modes in which no pod waits, none is refused.
func TestAShutdownInAModeWithoutWaiting(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneInShadow)
	n.occupy("holder")
	n.d.starts.Valve.ShutsDown(true)
	n.pod("second").runs().startsNow("app")
}
