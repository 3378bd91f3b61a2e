package plugin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
)

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
