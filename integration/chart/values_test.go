package chart

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/yaml"
)

// The default config is a file of the daemon and of preflight. A change of it restarts the daemons.
func TestTheDefaultConfigIsAFileOfTheDaemon(t *testing.T) {
	t.Parallel()
	const values = "{defaultConfig: {throttleConfig: {maxConcurrent: {value: %d}}}}"
	all := objects(t, fmt.Sprintf(values, 2))
	set, config := find[*appsv1.DaemonSet](all)[0], find[*corev1.ConfigMap](all)[0]
	pod := set.Spec.Template.Spec
	require.Contains(t, pod.Containers[0].Args, "--config=/etc/pod-pacemaker/config.yaml")
	require.Contains(t, pod.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "default-config", MountPath: "/etc/pod-pacemaker", ReadOnly: true})
	require.True(t, slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.ConfigMap != nil && v.ConfigMap.Name == config.Name }))
	var file struct {
		APIVersion, Kind string
		Spec             map[string]any
	}
	require.NoError(t, yaml.UnmarshalStrict([]byte(strings.Replace(config.Data["config.yaml"], "metadata:\n  name: pod-pacemaker\n", "", 1)), &file))
	require.Equal(t, "pod-pacemaker.io/v1alpha1 PacemakerConfig", file.APIVersion+" "+file.Kind)
	require.Equal(t, vals(t, "{throttleConfig: {maxConcurrent: {value: 2}}}"), file.Spec)
	other := find[*appsv1.DaemonSet](objects(t, fmt.Sprintf(values, 3)))[0]
	require.NotEqual(t, set.Spec.Template.Annotations, other.Spec.Template.Annotations)
	require.NotContains(t, daemon(t, "{}").Containers[0].Args, "--config=/etc/pod-pacemaker/config.yaml")
}

func TestTheDaemonGetsWhatTheValuesAdd(t *testing.T) {
	t.Parallel()
	container := daemon(t, everything).Containers[0]
	require.Equal(t, []corev1.Capability{"SYS_PTRACE"}, container.SecurityContext.Capabilities.Add)
	require.Contains(t, container.Env, corev1.EnvVar{Name: "EXTRA", Value: "1"})
	require.Contains(t, container.VolumeMounts, corev1.VolumeMount{Name: "extra", MountPath: "/extra"})
	require.Empty(t, daemon(t, "{}").Containers[0].SecurityContext.Capabilities.Add)

	// As in a pod, a quantity may be a number.
	sized := daemon(t, "{image: {repository: 'host:5000/team/pacer'}, resources: {requests: {cpu: 1.5, memory: 134217728}}}").Containers[0]
	require.Contains(t, sized.Image, "host:5000/team/pacer:")
	require.Equal(t, []int64{1500, 128 << 20}, []int64{sized.Resources.Requests.Cpu().MilliValue(), sized.Resources.Requests.Memory().Value()})

	set := find[*appsv1.DaemonSet](objects(t, "{updateStrategy: {type: OnDelete, rollingUpdate: null}}"))[0]
	require.Equal(t, appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}, set.Spec.UpdateStrategy)
}

// Pods of Jobs have the Job's name in a label.
func TestTheNamesOfJobsFitIntoALabel(t *testing.T) {
	t.Parallel()
	files := templates(t, "{fullnameOverride: "+strings.Repeat("a", 53)+"}")
	for _, file := range []string{"hooks/uninstall.yaml", "tests/preflight.yaml"} {
		for _, name := range regexp.MustCompile(`(?m)^  name: (.*)$`).FindAllStringSubmatch(files["templates/"+file], -1) {
			require.LessOrEqual(t, len(name[1]), 63, file)
		}
	}
}

// Each pod of the chart comes up on a node whose pods wait: a test or an uninstallation must not time out behind them.
func TestNoPodOfTheChartWaitsForOthers(t *testing.T) {
	t.Parallel()
	files := templates(t, "{image: {repository: example.test/pp}}")
	for _, file := range []string{"daemonset.yaml", "hooks/uninstall.yaml", "tests/preflight.yaml", "tests/status.yaml"} {
		require.Regexp(t, `\n +hostNetwork: true\n`, files["templates/"+file], file)
		require.Regexp(t, `\n +priorityClassName: system-node-critical\n`, files["templates/"+file], file)
	}
}

func TestTheNameOverrideIsInAllNames(t *testing.T) {
	t.Parallel()
	files, err := Render(Release{Name: "blue", Namespace: "pacing"}, vals(t, "{nameOverride: pacer}"))
	require.NoError(t, err)
	require.Contains(t, files["daemonset.yaml"], "name: blue-pacer\n")
	require.Contains(t, files["daemonset.yaml"], "app.kubernetes.io/name: pod-pacemaker\n", "by which the plugin for kubectl finds the daemons")
}

// Each object says what installed it, and pods are selected only by what stays the same.
func TestObjectsHaveTheCommonLabels(t *testing.T) {
	t.Parallel()
	for _, object := range objects(t, everything) {
		m, err := meta.Accessor(object)
		require.NoError(t, err)
		require.Subset(t, m.GetLabels(), map[string]string{
			"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/version": "v0.1.0", "helm.sh/chart": "pod-pacemaker-0.1.0",
		}, "%T %s", object, m.GetName())
	}
	set := find[*appsv1.DaemonSet](objects(t, "{}"))[0]
	own := map[string]string{"app.kubernetes.io/name": "pod-pacemaker", "app.kubernetes.io/instance": "pod-pacemaker"}
	require.Equal(t, own, set.Spec.Selector.MatchLabels)
	require.Equal(t, own, set.Spec.Template.Labels)
}

// Without rbac.create there is no role and no binding, and no hook that would need one.
func TestWithoutRBACThereAreNoRights(t *testing.T) {
	t.Parallel()
	all := objects(t, everything+"rbac: {create: false}\n")
	require.Empty(t, find[*rbacv1.ClusterRole](all))
	require.Empty(t, find[*rbacv1.ClusterRoleBinding](all))
	require.Empty(t, find[*rbacv1.Role](all))
	require.Empty(t, find[*rbacv1.RoleBinding](all))
	require.NotEmpty(t, find[*corev1.ServiceAccount](all))
	require.NotEmpty(t, find[*admissionv1.ValidatingAdmissionPolicy](all))
	files := templates(t, "{rbac: {create: false}}")
	require.Empty(t, strings.TrimSpace(files["templates/hooks/uninstall.yaml"]))
}

// A tool that compares what it renders with what the API server has, such as Argo CD, finds no difference.
func TestAdmissionPoliciesHaveTheAPIServersDefaults(t *testing.T) {
	t.Parallel()
	all := find[*admissionv1.ValidatingAdmissionPolicy](objects(t, everything))
	require.Len(t, all, 4)
	for _, policy := range all {
		match := policy.Spec.MatchConstraints
		require.Equal(t, admissionv1.Equivalent, *match.MatchPolicy, policy.Name)
		require.NotNil(t, match.NamespaceSelector, policy.Name)
		require.NotNil(t, match.ObjectSelector, policy.Name)
		require.Equal(t, admissionv1.Fail, *policy.Spec.FailurePolicy, policy.Name)
		for _, rule := range match.ResourceRules {
			require.Equal(t, admissionv1.AllScopes, *rule.Scope, policy.Name)
		}
	}
}

// With a certificate of one's own, the proxy serves it, and Prometheus checks it.
func TestTheMetricsHaveACertificateOfOnesOwn(t *testing.T) {
	t.Parallel()
	values := "{podMonitor: {enabled: true}, metricsProxy: {enabled: true, certificate: {secret: metrics-tls, serverName: metrics.example}}}"
	pod := daemon(t, values)
	require.Subset(t, pod.Containers[1].Args, []string{"--tls-cert=/tls/tls.crt", "--tls-key=/tls/tls.key"})
	require.Contains(t, pod.Containers[1].VolumeMounts, corev1.VolumeMount{Name: "metrics-proxy-certificate", MountPath: "/tls", ReadOnly: true})
	var secrets []string
	for _, v := range pod.Volumes {
		if v.Secret != nil {
			secrets = append(secrets, v.Secret.SecretName)
			require.Equal(t, new(true), v.Secret.Optional, "a Secret that is missing must not keep the daemon off the node")
		}
	}
	require.Equal(t, []string{"pod-pacemaker-metrics-proxy", "metrics-tls"}, secrets)
	files := installed(t, values)
	require.Contains(t, files["podmonitor.yaml"], "{name: metrics-tls, key: ca.crt}")
	require.Contains(t, files["podmonitor.yaml"], "serverName: metrics.example\n")
	require.NotContains(t, files["podmonitor.yaml"], "insecureSkipVerify")
}
