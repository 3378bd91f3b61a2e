package plugin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// manyContainers gives a pod several containers.
func manyContainers(pod *podwatch.Pod) {
	pod.Containers = containersNamed(podwatch.App, "app", "second", "third")
}

// kubelet evicts a pod only after the start of the waiting container has ended. Then it continues with the other containers
// of the pod.
func TestNoPodWaitsAtTheGateOfANodeWithAShortage(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	holder := n.occupy("holder")
	p := n.pod("waits", manyContainers).runs()
	a := p.waitsAtGate("app")
	made := p.creates("second")

	n.d.starts.Valve.Pressed(true)
	require.ErrorContains(t, a.result(), "NodePressure: the node is short of memory, disk or process IDs")
	require.ErrorContains(t, p.launches("second", made).result(), string(gate.NodePressure), "a hook that comes now ends, too")
	_, err := p.create("third")
	require.ErrorContains(t, err, "pod-pacemaker: waiting to start: Concurrency")
	n.noHookIsLeft()
	assert.Contains(t, n.d.waiting.Gate.Off(), "the node is short of memory, disk or process IDs")
	assert.Equal(t, throttle.Waiting, p.is(), "the pod keeps its place")

	holder.getsReady()
	p.startsNow("app")
}

func TestPodsWaitAtTheGateAgainAfterAShortage(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	holder := n.occupy("holder")
	p := n.pod("waits").runs()
	a := p.waitsAtGate("app")
	n.d.starts.Valve.Pressed(true)
	n.d.starts.Valve.Pressed(true)
	require.ErrorContains(t, a.result(), string(gate.NodePressure))

	n.d.starts.Valve.Pressed(false)
	assert.Empty(t, n.d.waiting.Gate.Off())
	a = p.waitsAtGate("app")
	holder.getsReady()
	a.succeeds()
}

// In the modes in which no pod waits, none is refused.
func TestAShortageInAModeWithoutWaiting(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneInShadow)
	n.occupy("holder")
	n.d.starts.Valve.Pressed(true)
	n.pod("second").runs().startsNow("app")
}

// This test covers the way from the Node's condition to the end of the wait.
func TestTheDaemonFollowsTheShortagesOfItsNode(t *testing.T) {
	t.Parallel()
	c := unstartedAPINodeWith(t, []nodeOption{with(func(o *Options) { o.Gate = waiting.GateAlways })})
	c.starts()
	c.isWatched()
	c.eventually("the configuration is in force", func() bool { return c.d.Status().Config.Generation == 1 })
	c.strangePod("holder").runs().startsNow("app")
	a := c.strangePod("waits").runs().waitsAtGate("app")
	_, err := c.kube.CoreV1().Nodes().UpdateStatus(c.ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node", ResourceVersion: "2"},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodePIDPressure, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now())},
		}},
	}, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.ErrorContains(t, a.result(), string(gate.NodePressure))
}
