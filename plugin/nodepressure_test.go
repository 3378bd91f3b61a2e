package plugin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// This test covers the way from the Node's condition to the end of the wait. kubelet reports a shutdown only there.
func TestTheDaemonFollowsTheConditionsOfItsNode(t *testing.T) {
	t.Parallel()
	for reason, condition := range map[reasons.Reason]corev1.NodeCondition{
		gate.NodePressure: {Type: corev1.NodePIDPressure, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now())},
		gate.NodeShutdown: {Type: corev1.NodeReady, Status: corev1.ConditionFalse, Message: "node is shutting down"},
	} {
		t.Run(string(reason), func(t *testing.T) {
			t.Parallel()
			c := unstartedAPINodeWith(t, []nodeOption{with(func(o *Options) { o.Gate = waiting.GateAlways })})
			c.starts()
			c.isWatched()
			c.eventually("the configuration is in force", func() bool { return c.d.Status().Config.Generation == 1 })
			c.strangePod("holder").runs().startsNow("app")
			a := c.strangePod("waits").runs().waitsAtGate("app")
			_, err := c.kube.CoreV1().Nodes().UpdateStatus(c.ctx, &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "node", ResourceVersion: "2"},
				Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{condition}},
			}, metav1.UpdateOptions{})
			require.NoError(t, err)
			require.ErrorContains(t, a.result(), string(reason))
		})
	}
}
