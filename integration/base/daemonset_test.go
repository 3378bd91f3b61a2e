package base

import (
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

func TestContainersAreConfined(t *testing.T) {
	t.Parallel()
	daemons := only[*appsv1.DaemonSet](t, render(t, ""))
	pod := daemons.Spec.Template.Spec

	require.Equal(t, int64(0), *pod.SecurityContext.RunAsUser, "only root can open containerd's NRI socket")
	require.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, pod.SecurityContext.SeccompProfile.Type)
	require.False(t, pod.HostPID)
	require.False(t, pod.HostIPC)
	for _, container := range everyContainer(daemons) {
		require.Equal(t, &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false),
			ReadOnlyRootFilesystem:   new(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}, container.SecurityContext, container.Name)
		require.Contains(t, container.Resources.Requests, corev1.ResourceCPU, container.Name)
		require.Contains(t, container.Resources.Limits, corev1.ResourceMemory, container.Name)
		require.NotContains(t, container.Resources.Limits, corev1.ResourceCPU, "a throttled daemon answers containerd too late")
	}
}

func TestHostPathsAreTheseAndNoOthers(t *testing.T) {
	t.Parallel()
	daemons := only[*appsv1.DaemonSet](t, render(t, ""))
	host := map[string]string{}
	for _, volume := range daemons.Spec.Template.Spec.Volumes {
		require.NotNil(t, volume.HostPath, volume.Name)
		host[volume.Name] = volume.HostPath.Path
	}

	type mount struct {
		container, host, path string
		readOnly              bool
	}
	var got []mount
	for _, container := range everyContainer(daemons) {
		for _, m := range container.VolumeMounts {
			require.Contains(t, host, m.Name)
			got = append(got, mount{container.Name, host[m.Name], m.MountPath, m.ReadOnly})
		}
	}
	require.ElementsMatch(t, []mount{
		{"pod-pacemaker", "/var/run/nri", "/var/run/nri", true},
		{"pod-pacemaker", "/run/containerd/io.containerd.runtime.v2.task/k8s.io", "/run/containerd/io.containerd.runtime.v2.task/k8s.io", true},
		{"pod-pacemaker", "/run/pod-pacemaker", "/run/pod-pacemaker", false},
		{"pod-pacemaker", "/var/lib/pod-pacemaker", "/var/lib/pod-pacemaker", false},
		{"pod-pacemaker", "/opt/pod-pacemaker/bin", "/opt/pod-pacemaker/bin", false},
		{"pod-pacemaker", "/etc/cni/net.d", "/etc/cni/net.d", false},
		{"pod-pacemaker", "/opt/cni/bin", "/opt/cni/bin", false},
		{"pod-pacemaker", "/sys/fs/cgroup", "/sys/fs/cgroup", true},
		{"pod-pacemaker", "/proc", "/host/proc", true},
	}, got)
	require.Contains(t, daemons.Spec.Template.Spec.Containers[0].Args, "--proc-root=/host/proc")
}

func TestDaemonRunsEverywhereAndFirst(t *testing.T) {
	t.Parallel()
	daemons := only[*appsv1.DaemonSet](t, render(t, ""))
	pod := daemons.Spec.Template.Spec
	require.Equal(t, "system-node-critical", pod.PriorityClassName)
	require.Equal(t, []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, pod.Tolerations)
	require.True(t, pod.HostNetwork, "the daemon must not wait for the pod network")
	require.Equal(t, "10%", daemons.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable.String())

	name := pod.Containers[0].Env[0]
	require.Equal(t, "NODE_NAME", name.Name)
	require.Equal(t, "spec.nodeName", name.ValueFrom.FieldRef.FieldPath)
}

func TestProbesAskWhereTheDaemonListens(t *testing.T) {
	t.Parallel()
	container := only[*appsv1.DaemonSet](t, render(t, "")).Spec.Template.Spec.Containers[0]
	var listen string
	for _, arg := range container.Args {
		if value, ok := strings.CutPrefix(arg, "--http="); ok {
			listen = value
		}
	}
	host, port, err := net.SplitHostPort(listen)
	require.NoError(t, err)
	require.True(t, net.ParseIP(host).IsLoopback(), "the port must not be reachable from outside the node")
	require.Len(t, container.Ports, 1)
	require.Equal(t, port, portOf(container))
	require.Equal(t, container.Ports[0].ContainerPort, container.Ports[0].HostPort)

	probe := container.ReadinessProbe.HTTPGet
	require.Equal(t, host, probe.Host)
	require.Equal(t, container.Ports[0].Name, probe.Port.StrVal)
	require.Equal(t, "/readyz", probe.Path)
}

// Every process on the node reaches the port. Only root may cause a restart of the daemon.
func TestLivenessIsAskedAtTheSocketOfRoot(t *testing.T) {
	container := only[*appsv1.DaemonSet](t, render(t, "")).Spec.Template.Spec.Containers[0]
	require.Nil(t, container.LivenessProbe.HTTPGet)
	require.Equal(t, []string{"pod-pacemaker", "alive"}, container.LivenessProbe.Exec.Command)
	for _, e := range container.Env {
		if e.Name == "POD_PACEMAKER_RUN_DIR" { // where the probe asks
			require.Contains(t, container.Args, "--run-dir="+e.Value)
			return
		}
	}
	require.Fail(t, "the probe does not know the daemon's folder")
}

// portOf returns the number of the container's only port.
func portOf(container corev1.Container) string {
	return strconv.Itoa(int(container.Ports[0].ContainerPort))
}
