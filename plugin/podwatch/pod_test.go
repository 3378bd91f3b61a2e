package podwatch

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
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
		{never, Sidecar, always, true},
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

func TestTerminal(t *testing.T) {
	t.Parallel()
	for phase, want := range map[corev1.PodPhase]bool{
		"": false, corev1.PodPending: false, corev1.PodRunning: false, corev1.PodUnknown: false,
		corev1.PodSucceeded: true, corev1.PodFailed: true,
	} {
		require.Equal(t, want, Pod{Phase: phase}.Terminal(), phase)
	}
}
