package chart

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// Without a proxy the metrics stay on the node's loopback address; with a proxy, other hosts reach
// only the proxy.
func TestOnlyTheProxyOpensTheMetrics(t *testing.T) {
	t.Parallel()
	for _, values := range []string{"{}", everything} {
		pod := daemon(t, values)
		for _, container := range pod.Containers {
			for _, port := range container.Ports {
				if container.Name == "metrics-proxy" {
					require.Equal(t, int32(19465), port.HostPort)
					continue
				}
				require.Equal(t, "127.0.0.1", port.HostIP, container.Name)
			}
		}
	}
	require.Len(t, daemon(t, "{}").Containers, 1)

	pod := daemon(t, everything)
	proxy := pod.Containers[1]
	require.Equal(t, pod.Containers[0].Image, proxy.Image)
	require.Equal(t, []string{"metrics-proxy", "--listen=:19465", "--upstream=127.0.0.1:19464", "--log-format=json"}, proxy.Args)
	require.Equal(t, int64(65532), *proxy.SecurityContext.RunAsUser)
	require.Equal(t, []corev1.Capability{"ALL"}, proxy.SecurityContext.Capabilities.Drop)
	require.Equal(t, []corev1.VolumeMount{
		{Name: "metrics-proxy-token", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true},
	}, proxy.VolumeMounts, "not the daemon's token, nor a file of the host")

	rights := map[string][]rbacv1.PolicyRule{}
	for _, role := range find[*rbacv1.ClusterRole](objects(t, everything)) {
		rights[role.Name] = role.Rules
	}
	require.Equal(t, []rbacv1.PolicyRule{
		{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
		{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
	}, rights["pod-pacemaker-metrics-auth"])
	require.Equal(t, []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}, rights["pod-pacemaker-metrics-reader"])
	for _, binding := range find[*rbacv1.ClusterRoleBinding](objects(t, everything)) {
		switch own := map[string]string{
			"pod-pacemaker-metrics-reader": "pod-pacemaker-metrics-reader", "pod-pacemaker-metrics-auth": "pod-pacemaker-metrics-proxy",
		}[binding.Name]; own {
		case "":
			require.Equal(t, "pod-pacemaker", binding.Subjects[0].Name, binding.Name)
		default:
			require.Equal(t, own, binding.Subjects[0].Name, "not the daemon's account")
		}
	}
}

// The proxy asks the daemon about pods at a socket in a folder that only the two containers share, and nobody is bound to
// the role of the users who ask.
func TestTheProxyAnswersWhyWhereThatIsOn(t *testing.T) {
	t.Parallel()
	const values = "{metricsProxy: {enabled: true, why: true}}"
	pod := daemon(t, values)
	require.Contains(t, pod.Containers[0].Args, "--why-socket=/why/why.sock")
	require.Contains(t, pod.Containers[1].Args, "--why-socket=/why/why.sock")
	require.Contains(t, pod.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "why", MountPath: "/why"})
	require.Contains(t, pod.Containers[1].VolumeMounts, corev1.VolumeMount{Name: "why", MountPath: "/why", ReadOnly: true})
	require.Contains(t, pod.Volumes, corev1.Volume{Name: "why", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	rights := map[string][]rbacv1.PolicyRule{}
	for _, role := range find[*rbacv1.Role](objects(t, values)) {
		rights[role.Name] = role.Rules
	}
	require.Equal(t, []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
		{APIGroups: []string{""}, Resources: []string{"pods/proxy"}, Verbs: []string{"get"}},
	}, rights["pod-pacemaker-why"])
	for _, binding := range find[*rbacv1.RoleBinding](objects(t, values)) {
		require.NotEqual(t, "pod-pacemaker-why", binding.RoleRef.Name)
	}
	require.NotContains(t, daemon(t, everything).Containers[0].Args, "--why-socket=/why/why.sock")
}

// The PodMonitor asks the proxy's port with the token of an account that may only read metrics.
func TestThePodMonitorHasAToken(t *testing.T) {
	t.Parallel()
	for _, monitored := range []bool{false, true} {
		values := fmt.Sprintf("{metricsProxy: {enabled: true}, podMonitor: {enabled: %t}}", monitored)
		secrets := find[*corev1.Secret](objects(t, values))
		secrets = slices.DeleteFunc(secrets, func(s *corev1.Secret) bool { return s.Name == "pod-pacemaker-metrics-proxy" })
		if !monitored {
			require.Empty(t, secrets)
			continue
		}
		require.Len(t, secrets, 1)
		require.Equal(t, corev1.SecretTypeServiceAccountToken, secrets[0].Type)
		require.Equal(t, "pod-pacemaker-metrics-reader", secrets[0].Annotations[corev1.ServiceAccountNameKey])
		files := installed(t, values)
		var monitor struct {
			Spec struct {
				PodMetricsEndpoints []struct {
					Port, Scheme  string
					Authorization struct{ Credentials corev1.SecretKeySelector }
				}
			}
		}
		require.NoError(t, yaml.Unmarshal([]byte(files["podmonitor.yaml"]), &monitor))
		endpoint := monitor.Spec.PodMetricsEndpoints[0]
		require.Equal(t, daemon(t, values).Containers[1].Ports[0].Name, endpoint.Port)
		require.Equal(t, "https", endpoint.Scheme)
		require.Equal(t, secrets[0].Name, endpoint.Authorization.Credentials.Name)
		require.Equal(t, corev1.ServiceAccountTokenKey, endpoint.Authorization.Credentials.Key)
	}
}

// A daemon finds kubelet's configuration on its node, among the places that the values name.
func TestDaemonSearchesKubeletConfigInEachPlace(t *testing.T) {
	t.Parallel()
	require.Empty(t, daemon(t, "{}").InitContainers)
	pod := daemon(t, everything)
	finds := pod.InitContainers[0]
	require.Equal(t, []string{
		"copy-kubelet-config", "--to=/kubelet/config.yaml", "/host/var/lib/kubelet/config.yaml", "/host/etc/kubernetes/kubelet/config.json",
	}, finds.Args)
	require.Equal(t, []corev1.VolumeMount{{Name: "host", MountPath: "/host", ReadOnly: true}, {Name: "kubelet-config", MountPath: "/kubelet"}}, finds.VolumeMounts)
	for _, mount := range pod.Containers[0].VolumeMounts {
		require.NotEqual(t, "host", mount.Name, "the daemon itself does not mount the host")
	}
	require.Contains(t, pod.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "kubelet-config", MountPath: "/kubelet", ReadOnly: true})
}
