package podwatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube/kubetest"
)

// stopped returns a pod with one container, running or not. change requests its stop.
func stopped(name string, running bool, change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}},
	}
	if running {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}}
	}
	if change != nil {
		change(pod)
	}
	return pod
}

// deletedBy deletes the pod, with a grace period that ends at this time.
func deletedBy(at time.Time) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: at} }
}

func TestStoppingNamesThePodThatMayTakeLongest(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	mirror := func(pod *corev1.Pod) {
		deletedBy(now.Add(time.Hour))(pod)
		pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"}
	}
	for name, c := range map[string]struct {
		pods []*corev1.Pod
		want string // the pod; empty: none
		by   time.Time
	}{
		"no pod is to stop":            {[]*corev1.Pod{stopped("a", true, nil)}, "", time.Time{}},
		"it has stopped":               {[]*corev1.Pod{stopped("a", false, deletedBy(now.Add(time.Hour)))}, "", time.Time{}},
		"deleted":                      {[]*corev1.Pod{stopped("a", true, deletedBy(now.Add(time.Minute)))}, "ns/a", now.Add(time.Minute + killMargin)},
		"about to be killed":           {[]*corev1.Pod{stopped("a", true, deletedBy(now))}, "ns/a", now.Add(killMargin)},
		"not killed in time":           {[]*corev1.Pod{stopped("a", true, deletedBy(now.Add(-killMargin))), stopped("b", true, deletedBy(now.Add(time.Hour)))}, "ns/a", time.Time{}},
		"a mirror pod":                 {[]*corev1.Pod{stopped("a", true, mirror)}, "", time.Time{}},
		"it has no container any more": {[]*corev1.Pod{stopped("ended", true, deletedBy(now.Add(-time.Hour))), stopped("a", true, deletedBy(now.Add(time.Minute)))}, "ns/a", now.Add(time.Minute + killMargin)},
		"the longest": {[]*corev1.Pod{
			stopped("a", true, deletedBy(now.Add(time.Second))), stopped("b", true, deletedBy(now.Add(time.Hour))),
			stopped("c", true, deletedBy(now.Add(time.Minute))), stopped("d", false, deletedBy(now.Add(2*time.Hour))),
		}, "ns/b", now.Add(time.Hour + killMargin)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := New(Options{Client: kubetest.Of(fake.NewClientset()), NodeName: "node"})
			for _, p := range c.pods {
				pod := trim(p)
				w.pods[pod.UID] = &cached{pod: pod}
			}
			pod, by, ok := w.Stopping(now, map[string]bool{"a": true, "b": true, "c": true, "d": true})
			assert.Equal(t, c.want != "", ok)
			assert.Equal(t, c.want, pod)
			assert.Equal(t, c.by, by)
		})
	}
}
