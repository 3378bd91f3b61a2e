package plugin

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// restarted sets a pod's restart policy.
func restarted(policy string) func(*podwatch.Pod) {
	return func(pod *podwatch.Pod) { pod.RestartPolicy = policy }
}

// fillGate makes as many pods wait at the gate as it has room for. It returns them, and the first pod that was refused.
func (n *node) fillGate() (waiting []*attempt, refused *testPod) {
	n.t.Helper()
	for i := 0; ; i++ {
		p := n.pod(fmt.Sprintf("waits-%d", i))
		if err := p.run(); err != nil {
			require.ErrorContains(n.t, err, "kubelet tries again")
			return waiting, p
		}
		waiting = append(waiting, p.waitsAtGate("app"))
	}
}

// startOneByOne lets the pod of each attempt start and get ready, one after the other.
func (n *node) startOneByOne(waiting []*attempt) {
	n.t.Helper()
	for _, a := range waiting {
		a.succeeds()
		a.pod.getsReady()
	}
}

func TestARefusedSandboxKeepsItsPlace(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	holder := n.occupy("holder")
	waiting, refused := n.fillGate()
	joined := n.view(refused.uid)
	require.Equal(t, throttle.Waiting, joined.State, "the events of the sandbox's removal come before the refusal")
	require.False(t, joined.Present)

	later := n.pod("later")
	require.Error(t, later.run())
	require.Error(t, refused.run(), "the gate has no room yet")
	assert.Equal(t, joined.Arrived, n.view(refused.uid).Arrived, "the pod has the place of its first attempt")
	assert.Less(t, n.view(refused.uid).Ahead, n.view(later.uid).Ahead)
	sandboxes, _ := n.refused()
	assert.Equal(t, uint64(3), sandboxes)

	holder.getsReady()
	n.startOneByOne(waiting)
	refused.runs().startsNow("app")
	refused.getsReady()
	later.runs().startsNow("app")
	sandboxes, _ = n.refused()
	assert.Equal(t, uint64(3), sandboxes, "no other")
}
