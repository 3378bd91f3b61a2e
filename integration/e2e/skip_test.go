//go:build e2e && full

package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// With allowSkipAnnotation, a pod with the annotation pod-pacemaker.io/skip starts at once, before
// the pods that wait. Without it, the pod waits for its turn.
func TestTheSkipAnnotationCountsOnlyIfAllowed(t *testing.T) {
	d := startDaemon(t, placesForAll...)
	for allowed, order := range map[bool][]string{
		true:  {"holds", "skips", "waits"},
		false: {"holds", "waits", "skips"},
	} {
		t.Run(fmt.Sprintf("allowed %t", allowed), func(t *testing.T) {
			d.configure(t, fmt.Sprintf("{exemptions: {allowSkipAnnotation: %t}, throttleConfig: {maxConcurrent: {value: 1}, noProgressAfter: 0s}}", allowed))
			ns, slow := namespace(t), newLatch(t)
			createPod(t, ns, "holds", herdPod(0.1, slow.holds))
			eventually(t, "a pod holds the slot", func() bool { return len(begun(t, ns)) == 1 })
			createPod(t, ns, "waits", herdPod(0.1))
			eventually(t, "a pod waits at the gate", func() bool { return created(t, ns, "waits") })
			_, err := node.Client().CoreV1().Pods(ns).Create(t.Context(), &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "skips", Annotations: map[string]string{"pod-pacemaker.io/skip": "true"}},
				Spec:       herdPod(0.1),
			}, metav1.CreateOptions{})
			require.NoError(t, err)
			eventually(t, "the pod with the annotation is ready, or waits at the gate", func() bool {
				reason, _ := d.waitsFor(t, ns, "skips")
				return isReady(t, ns, "skips") || created(t, ns, "skips") && reason != ""
			})
			slow.release(t)
			eventually(t, "all pods are ready", func() bool { return allReady(t, ns, len(order)) })
			var started []string
			for _, c := range containers(t, ns) {
				started = append(started, c.pod)
			}
			assert.Equal(t, order, started, "the order of the starts")
			d.idle(t)
		})
	}
}
