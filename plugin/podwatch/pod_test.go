package podwatch

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestStartsAgain(t *testing.T) {
	t.Parallel()
	const always, onFailure, never = "Always", "OnFailure", "Never"
	for _, c := range []struct {
		pod  string
		kind Kind
		own  string
		want bool
	}{
		{always, App, "", true},
		{onFailure, App, "", true},
		{never, App, "", false},
		{"", App, "", false},
		{"Sometimes", App, "", false},
		{always, App, never, false},
		{always, App, onFailure, true},
		{always, App, "Sometimes", false},
		{never, App, always, false}, // a kubelet that ignores a container's own policy does not restart it
		{always, Init, "", true},
		{onFailure, Init, "", true},
		{never, Init, "", false},
		{always, Init, never, false},
		{never, Init, onFailure, false},
		{never, Sidecar, always, false}, // its pod would hang on a kubelet up to 1.32
		{onFailure, Sidecar, always, true},
		{always, Sidecar, always, true},
		{always, Ephemeral, "", false},
		{always, Unknown, "", false},
	} {
		pod := Pod{RestartPolicy: c.pod, Containers: map[string]Container{"c": {Kind: c.kind, RestartPolicy: c.own}}}
		require.Equal(t, c.want, pod.StartsAgain("c"), "%+v", c)
		require.False(t, pod.StartsAgain("other"), "a container that the pod does not have")
	}
	require.False(t, Pod{}.StartsAgain("c"))
}

// The Job controller fails a Job, and removes its pods, when the restarts of its pods reach the backoffLimit.
func TestStartsAgainOfAJob(t *testing.T) {
	t.Parallel()
	yes := true
	for kind, want := range map[string]bool{"Job": false, "JobLike": true, "ReplicaSet": true} {
		pod := trim(webPod(func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: kind, Name: "j", Controller: &yes}}
			p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
			p.Spec.InitContainers = []corev1.Container{container("init"), with(container("sidecar"), corev1.ContainerRestartPolicyAlways)}
		}))
		for name := range pod.Containers {
			require.Equal(t, want, pod.StartsAgain(name), "%s of a %s", name, kind)
		}
	}
}

func TestDescribes(t *testing.T) {
	t.Parallel()
	pod := Pod{Containers: map[string]Container{"a": {Kind: App, ID: "1"}, "b": {Kind: App, ID: "2"}, "new": {Kind: App}}}
	require.True(t, pod.Describes(nil))
	require.True(t, pod.Describes(map[string]string{"a": "1"}))
	require.True(t, pod.Describes(map[string]string{"a": "1", "b": "2"}))
	require.False(t, pod.Describes(map[string]string{"a": "1", "b": "3"}), "this is another run of b")
	require.False(t, pod.Describes(map[string]string{"new": "4"}), "the container is not reported yet")
	require.False(t, pod.Describes(map[string]string{"c": ""}), "the pod has no container of this name")
}
