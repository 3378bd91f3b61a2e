package crd

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSourceReportsEveryVersionOfTheNode(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		says := func(message string) {
			t.Helper()
			n := node(nil)
			n.Spec.Taints = []corev1.Taint{{Key: message}}
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Message: message}}
			_, err := w.nodes.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{})
			require.NoError(t, err)
			synctest.Wait()
		}
		var heard []string
		w.onNode = func(n *corev1.Node) {
			require.Len(t, n.Status.Conditions, 1)
			require.Len(t, n.Spec.Taints, 1)
			heard = append(heard, n.Status.Conditions[0].Message)
		}
		says("before")
		w.run()
		says("after")
		assert.Equal(t, []string{"before", "after"}, heard)
	})
}
