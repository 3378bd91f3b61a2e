package crd

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// shortOf gives the Node object of a node that runs short of these, and of no other.
func shortOf(short ...corev1.NodeConditionType) *corev1.Node {
	n := nodeSays(corev1.ConditionTrue, saysReady)
	n.Status.Conditions = append(n.Status.Conditions,
		corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionUnknown},
		corev1.NodeCondition{Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionTrue})
	for _, kind := range short {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: kind, Status: corev1.ConditionTrue})
	}
	return n
}

func TestSourceTellsWhetherTheNodeRunsShort(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		var told []bool
		w.source.OnPressure(func(begins bool) { told = append(told, begins) })
		short := func(short ...corev1.NodeConditionType) {
			t.Helper()
			_, err := w.nodes.CoreV1().Nodes().Update(w.t.Context(), shortOf(short...), metav1.UpdateOptions{})
			require.NoError(w.t, err)
			synctest.Wait()
		}
		w.run()
		short()
		assert.Empty(t, told)
		short(corev1.NodePIDPressure)
		assert.Equal(t, []bool{true}, told)
		short(corev1.NodePIDPressure, corev1.NodeMemoryPressure)
		short(corev1.NodeDiskPressure)
		assert.Equal(t, []bool{true}, told, "each change is told once")
		short()
		assert.Equal(t, []bool{true, false}, told)
	})
}

// Other than of a shutdown, what stands there when the daemon begins counts: at worst
// something is watched in vain.
func TestSourceTellsOfAPressureThatItDidNotSeeBegin(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		_, err := w.nodes.CoreV1().Nodes().Update(w.t.Context(), shortOf(corev1.NodeMemoryPressure), metav1.UpdateOptions{})
		require.NoError(t, err)
		var told []bool
		w.source.OnPressure(func(begins bool) { told = append(told, begins) })
		w.run()
		assert.Equal(t, []bool{true}, told)
	})
}

func TestTheCacheKeepsThePressureOfTheNode(t *testing.T) {
	t.Parallel()
	trimmed, err := trimNode(shortOf(corev1.NodeMemoryPressure, corev1.NodePIDPressure))
	require.NoError(t, err)
	kept, ok := trimmed.(*corev1.Node)
	require.True(t, ok)
	assert.Len(t, pressures(kept), 2)
	assert.Len(t, kept.Status.Conditions, 3, "and whether it is ready")
}
