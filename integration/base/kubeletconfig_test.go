package base

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

func TestKubeletConfigOverlayMountsTheFileAndNamesIt(t *testing.T) {
	t.Parallel()
	base := only[*appsv1.DaemonSet](t, render(t, ""))
	overlay := only[*appsv1.DaemonSet](t, renderOn(t, "../overlays/kubelet-config", ""))

	const path = "/host/kubelet/config.yaml"
	want := base.DeepCopy()
	pod := &want.Spec.Template.Spec
	daemon := &pod.Containers[0]
	daemon.Args = append(daemon.Args, "--kubelet-config="+path)
	daemon.VolumeMounts = append(daemon.VolumeMounts, corev1.VolumeMount{Name: "kubelet-config", MountPath: path, ReadOnly: true})
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "kubelet-config", VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/kubelet/config.yaml", Type: new(corev1.HostPathFile)},
	}})
	require.Equal(t, want, overlay, "the overlay must change nothing else")
}
