package crd

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What kubelet says of its node, ready and not.
const (
	saysReady     = "kubelet is posting ready status"
	saysShutdown  = "node is shutting down"
	saysBothFault = "[container runtime is down, node is shutting down]"
)

// nodeSays gives the Node object with a message in its condition Ready.
func nodeSays(status corev1.ConditionStatus, message string) *corev1.Node {
	n := node(nil)
	n.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Message: saysShutdown},
		{Type: corev1.NodeReady, Status: status, Message: message},
	}
	return n
}

// says has kubelet say so.
func (w *world) says(status corev1.ConditionStatus, message string) {
	_, err := w.nodes.CoreV1().Nodes().Update(w.t.Context(), nodeSays(status, message), metav1.UpdateOptions{})
	require.NoError(w.t, err)
	synctest.Wait()
}

func TestSourceTellsWhenTheNodeShutsDown(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		var told []bool
		w.source.OnShutdown(func(begins bool) { told = append(told, begins) })
		w.run()
		w.says(corev1.ConditionTrue, saysReady)
		w.says(corev1.ConditionFalse, "container runtime is down")
		w.says(corev1.ConditionTrue, saysReady+" after "+saysShutdown)
		assert.Empty(t, told)
		w.says(corev1.ConditionFalse, saysShutdown)
		w.says(corev1.ConditionFalse, saysBothFault)
		assert.Equal(t, []bool{true}, told, "each change is told once")
		w.says(corev1.ConditionUnknown, "Kubelet stopped posting node status.")
		assert.Equal(t, []bool{true, false}, told)
	})
}

// What was true before the machine was booted still stands in the API server when
// the daemon begins.
func TestSourceBelievesNoShutdownThatItDidNotSeeBegin(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.says(corev1.ConditionFalse, saysShutdown)
		var told []bool
		w.source.OnShutdown(func(begins bool) { told = append(told, begins) })
		w.run()
		w.says(corev1.ConditionFalse, saysBothFault)
		assert.Empty(t, told)
		w.says(corev1.ConditionTrue, saysReady)
		assert.Empty(t, told)
		w.says(corev1.ConditionFalse, saysShutdown)
		assert.Equal(t, []bool{true}, told)
	})
}

func TestTheCacheKeepsTheReadinessOfTheNode(t *testing.T) {
	t.Parallel()
	trimmed, err := trimNode(nodeSays(corev1.ConditionFalse, saysShutdown))
	require.NoError(t, err)
	kept, ok := trimmed.(*corev1.Node)
	require.True(t, ok)
	require.Len(t, kept.Status.Conditions, 1)
	assert.True(t, shutsDown(kept))
	again, err := trimNode(kept)
	require.NoError(t, err)
	assert.Equal(t, kept, again)
}
