//go:build e2e

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// kubelet cannot pull a pod's image. The daemon does not say that the pod waits for its turn, in no event either, and the
// time does not count as a wait when the pod starts in the end. A pull permit that it has is soon another pod's.
func TestAPodWhoseImageCannotBePulledDoesNotWait(t *testing.T) {
	d := startDaemon(t)
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 1}, maxPulling: 1, noProgressAfter: 0s}}")
	ns, slow := namespace(t), newLatch(t)
	createPod(t, ns, "bad", herdPod(0.1, func(spec *corev1.PodSpec) {
		spec.Containers[0].Image, spec.Containers[0].ImagePullPolicy = "127.0.0.1:1/none:1", corev1.PullIfNotPresent
	}))
	eventually(t, "kubelet cannot pull the image", func() bool {
		statuses := getPod(t, ns, "bad").Status.ContainerStatuses
		return len(statuses) > 0 && statuses[0].State.Waiting != nil && statuses[0].State.Waiting.Reason == "ImagePullBackOff"
	})
	createPod(t, ns, "holds", herdPod(0.1, slow.holds))
	eventually(t, "another pod gets the only pull permit, and the slot", func() bool { return len(begun(t, ns)) == 1 })
	createPod(t, ns, "waits", herdPod(0.1))
	eventually(t, "the pod that waits has an event", func() bool { return len(ownEvents(t, ns, "waits")) > 0 })
	assert.Equal(t, "WaitingToStart", ownEvents(t, ns, "waits")[0].Reason)
	assert.Empty(t, ownEvents(t, ns, "bad"))
	s := d.status(t)
	require.Len(t, s.Waiting, 1)
	require.Len(t, s.Preparing, 1)
	assert.Equal(t, "bad", s.Preparing[0].Name)
	assert.Equal(t, reasons.Preparing, s.Preparing[0].Reason)
	assert.InDelta(t, 1, d.metric(t, "pod_pacemaker_waiting"), 0)
	assert.Contains(t, d.why(t, ns, "bad"), "not waiting for pod-pacemaker")

	slow.release(t)
	eventually(t, "the others are ready", func() bool { return isReady(t, ns, "holds") && isReady(t, ns, "waits") })
	patch := `{"spec":{"containers":[{"name":"app","image":"` + lab.HerdImage + `"}]}}`
	_, err := node.Client().CoreV1().Pods(ns).Patch(t.Context(), "bad", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(t, err)
	eventually(t, "the pod is ready with another image", func() bool { return isReady(t, ns, "bad") })
	d.idle(t)
	end := d.ended(t, ns)["bad"]
	assert.Equal(t, reasons.WithinLimits, end.Admission)
	took := end.Admitted.Sub(end.Joined)
	t.Logf("it was admitted %s after its sandbox, and waited %s of that", took, end.WaitedSeconds.Duration())
	assert.Less(t, end.WaitedSeconds.Duration(), took/2, "the time in which kubelet could not pull is no wait")
	assert.Less(t, end.WaitedSeconds.Duration(), 10*time.Second)
}

// getPod returns a pod.
func getPod(t *testing.T, namespace, name string) *corev1.Pod {
	t.Helper()
	pod, err := node.Client().CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return pod
}

// ownEvents returns the daemon's events on a pod.
func ownEvents(t *testing.T, namespace, name string) []corev1.Event {
	t.Helper()
	events, err := node.Client().CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "source=pod-pacemaker,involvedObject.name=" + name})
	require.NoError(t, err)
	return events.Items
}

// isReady reports whether a pod is ready.
func isReady(t *testing.T, namespace, name string) bool {
	t.Helper()
	pod, err := node.Client().CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return condition(*pod, corev1.PodReady)
}
