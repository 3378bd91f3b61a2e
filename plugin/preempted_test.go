package plugin

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/evictions"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// From a critical pod that kubelet does not accept, and its event, to the end of the wait.
func TestTheDaemonFollowsThePreemptionsOfItsNode(t *testing.T) {
	t.Parallel()
	c, a := victimAtGate(t, evictions.Preemption)
	priority := int32(systemCritical)
	_, err := c.kube.CoreV1().Pods("default").Create(c.ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "critical", UID: "critical", ResourceVersion: "1"},
		Spec:       corev1.PodSpec{NodeName: "node", Priority: &priority, Containers: []corev1.Container{{Name: "app"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.ErrorContains(t, a.result(), string(throttle.Preempted))
}

func TestForWhichPodsKubeletMayPreemptOthers(t *testing.T) {
	t.Parallel()
	critical := podwatch.Pod{Priority: systemCritical, Phase: corev1.PodPending}
	assert.True(t, mayPreempt(critical))
	for name, change := range map[string]func(*podwatch.Pod){
		"not critical": func(p *podwatch.Pod) { p.Priority-- },
		"accepted":     func(p *podwatch.Pod) { p.Accepted = true },
		"static":       func(p *podwatch.Pod) { p.Static = true },
		"ended":        func(p *podwatch.Pod) { p.Phase = corev1.PodFailed },
	} {
		pod := critical
		change(&pod)
		assert.False(t, mayPreempt(pod), name)
	}
	critical.Deleting = true
	assert.True(t, mayPreempt(critical), "kubelet does not look while it preempts")
}
