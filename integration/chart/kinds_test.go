package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/yaml"
)

// Artifact Hub shows the CRDs named in Chart.yaml: they are the CRDs that the chart installs.
func TestTheAnnotationsNameTheCRDs(t *testing.T) {
	t.Parallel()
	c, err := Load()
	require.NoError(t, err)
	var annotated []struct{ Kind, Version, Name string }
	require.NoError(t, yaml.Unmarshal([]byte(c.Metadata.Annotations["artifacthub.io/crds"]), &annotated))
	files, err := filepath.Glob(Repository("deploy", "crds", "pod-pacemaker.io_*.yaml"))
	require.NoError(t, err)
	require.Len(t, annotated, len(files))
	for _, one := range annotated {
		plural, _, _ := strings.Cut(one.Name, ".")
		text, err := os.ReadFile(Repository("deploy", "crds", "pod-pacemaker.io_"+plural+".yaml"))
		require.NoError(t, err)
		require.Contains(t, string(text), "kind: "+one.Kind+"\n")
		require.Contains(t, string(text), "name: "+one.Version+"\n")
		require.Contains(t, string(text), "name: "+one.Name+"\n")
	}
	require.Equal(t, "v"+c.Metadata.Version, c.Metadata.AppVersion, "the chart and the program are released together")
}

// Alerts and dashboard rows about StartPolicies come only with startPolicies.monitoring.
func TestStartPoliciesBringTheirAlertsAndDashboardRow(t *testing.T) {
	t.Parallel()
	for _, enabled := range []bool{false, true} {
		files := installed(t, fmt.Sprintf(
			"{metricsProxy: {enabled: true}, prometheusRule: {enabled: true}, dashboard: {enabled: true}, startPolicies: {monitoring: %t}}", enabled))
		var rule struct {
			Spec struct {
				Groups []struct {
					Name  string
					Rules []struct{ Alert, Expr string }
				}
			}
		}
		require.NoError(t, yaml.Unmarshal([]byte(files["prometheusrule.yaml"]), &rule))
		require.Greater(t, len(rule.Spec.Groups[0].Rules), 5)
		require.Equal(t, enabled, strings.Contains(files["prometheusrule.yaml"], "pod_pacemaker_policy_"))
		var dashboard corev1.ConfigMap
		require.NoError(t, yaml.Unmarshal([]byte(files["dashboard.yaml"]), &dashboard))
		var content struct {
			UID    string
			Panels []struct{ Title string }
		}
		require.NoError(t, json.Unmarshal([]byte(dashboard.Data["pod-pacemaker.json"]), &content))
		require.NotEmpty(t, content.UID)
		require.Greater(t, len(content.Panels), 25)
		require.Equal(t, enabled, strings.Contains(dashboard.Data["pod-pacemaker.json"], "pod_pacemaker_policy_"))
		require.Equal(t, enabled, strings.Contains(dashboard.Data["pod-pacemaker.json"], "Start policies"))
		require.Contains(t, dashboard.Data["pod-pacemaker.json"], "What it costs", "the row after the one of the StartPolicies")
	}
}

// Each permission for StartPolicies comes with its own value alone.
func TestPermissionsForStartPoliciesStandAlone(t *testing.T) {
	t.Parallel()
	for value, file := range map[string]string{"clusterScope": "slots.yaml", "namespaceLabels": "namespaces.yaml"} {
		files := templates(t, "{startPolicies: {"+value+": true}}")
		for _, other := range []string{"slots.yaml", "namespaces.yaml"} {
			require.Equal(t, other == file, strings.TrimSpace(files["templates/"+other]) != "", "%s: %s", value, other)
		}
		require.Contains(t, files["templates/"+notes], "\n  StartPolicies, also ", value)
	}
}

func TestTheStartupTaintNeedsItsPolicy(t *testing.T) {
	t.Parallel()
	values := vals(t, "{startupTaint: {enabled: true}}")
	_, err := Render(Release{Name: "pod-pacemaker", Namespace: "pacing", KubeVersion: "v1.29.4"}, values)
	require.ErrorContains(t, err, "startupTaint.enabled: needs Kubernetes 1.30")
	files, err := Render(Release{Name: "pod-pacemaker", Namespace: "pacing", KubeVersion: "v1.30.0"}, values)
	require.NoError(t, err)
	require.Contains(t, files["startuptaint.yaml"], "kind: ValidatingAdmissionPolicyBinding")
}

// `helm test` asks the daemon of a node at its own socket, and its pod is not one of the DaemonSet.
func TestHelmTestAsksTheDaemon(t *testing.T) {
	t.Parallel()
	files := templates(t, "{paths: {run: /x/run}, image: {repository: example.test/pp}, nodeSelector: {kind: big}}")
	object := decoded(t, files["templates/tests/status.yaml"])
	pod, ok := object.(*corev1.Pod)
	require.True(t, ok)
	require.Equal(t, "test", pod.Annotations["helm.sh/hook"])
	require.NotEqual(t, "pod-pacemaker", pod.Labels["app.kubernetes.io/name"], "the label by which the DaemonSet selects pods")
	require.Equal(t, "big", pod.Spec.NodeSelector["kind"], "nodes on which a daemon runs")
	require.Equal(t, "example.test/pp:v0.1.0", pod.Spec.Containers[0].Image)
	require.Equal(t, []string{"status", "--ready", "--run-dir=/x/run"}, pod.Spec.Containers[0].Args)
	require.Equal(t, "/x/run", pod.Spec.Containers[0].VolumeMounts[0].MountPath)
	require.Equal(t, "/x/run", pod.Spec.Volumes[0].HostPath.Path)
}

// Before an uninstallation, a Job deletes the DaemonSet with a right to this one alone. No daemon may make its pod wait.
func TestUninstallDeletesTheDaemonSetFirst(t *testing.T) {
	t.Parallel()
	files, err := renderAll(Release{Name: "blue", Namespace: "pacing"}, nil)
	require.NoError(t, err)
	var job *batchv1.Job
	var role *rbacv1.Role
	for document := range strings.SplitSeq(files["templates/hooks/uninstall.yaml"], "\n---\n") {
		object := decoded(t, document)
		m, err := meta.Accessor(object)
		require.NoError(t, err)
		require.Equal(t, "pre-delete", m.GetAnnotations()["helm.sh/hook"])
		switch o := object.(type) {
		case *batchv1.Job:
			job = o
		case *rbacv1.Role:
			role = o
		}
	}
	require.NotContains(t, files["templates/rbac.yaml"], "name: "+role.Name+"\n", "Helm would replace the role of the daemons")
	require.Equal(t, []string{"blue-pod-pacemaker"}, role.Rules[0].ResourceNames)
	require.Equal(t, []string{"get", "delete"}, role.Rules[0].Verbs)
	require.Equal(t, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}, role.Rules[1], "pods have other names")
	require.Len(t, role.Rules, 2)
	pod := job.Spec.Template.Spec
	require.Equal(t, []string{"remove-daemonset", "pacing/blue-pod-pacemaker"}, pod.Containers[0].Args)
	require.True(t, pod.HostNetwork)
	require.Equal(t, "system-node-critical", pod.PriorityClassName)
	require.NotEqual(t, "pod-pacemaker", job.Spec.Template.Labels["app.kubernetes.io/name"], "the label by which the DaemonSet selects pods")
}

// The scheduler places these pods. With a toleration of every taint, it may choose a node that is off, where a pod waits for
// ever and `helm uninstall` fails.
func TestThePodsOfJobsDoNotTolerateANodeThatIsOff(t *testing.T) {
	t.Parallel()
	controlPlane := corev1.Toleration{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists}
	for values, want := range map[string][]corev1.Toleration{
		"{}":            {controlPlane},
		"tolerations: ": {controlPlane},
		"tolerations: [{operator: Exists}, {operator: Exists, effect: NoExecute}, {key: pool, value: a, effect: NoSchedule}]": {
			controlPlane, {Key: "pool", Value: "a", Effect: corev1.TaintEffectNoSchedule},
		},
	} {
		files := templates(t, values)
		seen := 0
		for _, name := range []string{"hooks/uninstall.yaml", "tests/preflight.yaml", "tests/status.yaml"} {
			for document := range strings.SplitSeq(files["templates/"+name], "\n---\n") {
				object := decoded(t, document)
				switch o := object.(type) {
				case *batchv1.Job:
					require.Equal(t, want, o.Spec.Template.Spec.Tolerations, name)
				case *corev1.Pod:
					require.Equal(t, want, o.Spec.Tolerations, name)
				default:
					continue
				}
				seen++
			}
		}
		require.Equal(t, 3, seen)
	}
	require.Equal(t, []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, daemon(t, "{}").Tolerations, "a daemon belongs on every node")
}

// Preflight has the flags, mounts, volumes and service account of the daemon.
func TestPreflightRunsWithTheDaemonsFlagsAndMounts(t *testing.T) {
	t.Parallel()
	release := Release{Name: "pod-pacemaker", Namespace: "pacing"}
	files, err := renderAll(release, vals(t, everything+"preflight: {nodes: 3}\naffinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}}\n"))
	require.NoError(t, err)
	object := decoded(t, files["templates/tests/preflight.yaml"])
	job, ok := object.(*batchv1.Job)
	require.True(t, ok)
	require.Equal(t, int32(3), *job.Spec.Completions)
	require.Equal(t, int32(0), *job.Spec.BackoffLimitPerIndex, "a fault on one node must not end the check of the others")
	of := daemon(t, everything)
	have, want := job.Spec.Template.Spec.Containers[0], of.Containers[0]
	require.Equal(t, append([]string{"preflight", "--cni-conf-dir="}, want.Args[1:]...), have.Args)
	require.Equal(t, want.SecurityContext, have.SecurityContext)
	require.Equal(t, want.VolumeMounts, have.VolumeMounts)
	ofTheDaemon := slices.DeleteFunc(slices.Clone(of.Volumes), func(v corev1.Volume) bool { return v.Name == "metrics-proxy-token" })
	require.Equal(t, ofTheDaemon, job.Spec.Template.Spec.Volumes)
	require.Equal(t, of.InitContainers, job.Spec.Template.Spec.InitContainers, "the containers that find kubelet's configuration")
	require.Equal(t, of.ServiceAccountName, job.Spec.Template.Spec.ServiceAccountName)
}

// The notes say what is in force with these values, and what to do next.
func TestNotesFollowTheValues(t *testing.T) {
	t.Parallel()
	notesOf := func(values string) string {
		files := templates(t, values)
		return files["templates/"+notes]
	}
	plain := notesOf("{}")
	require.Contains(t, plain, "no PacemakerConfig, so no pod waits")
	require.Contains(t, plain, "mode: Shadow")
	require.Contains(t, plain, "in the waiting room, on nodes where nothing speaks against it")
	require.Contains(t, notesOf("{waitingRoom: {mode: off}}"), "many show CreateContainerError")
	require.Contains(t, notesOf("{waitingRoom: {mode: on}}"), "in the waiting room\n")
	require.Contains(t, plain, "metrics: at 127.0.0.1:19464 of each node, which a Prometheus elsewhere cannot reach")
	require.NotContains(t, plain, "StartPolicies")
	require.NotContains(t, plain, "taint")
	_, manifest, _ := strings.Cut(plain, "<<EOF\n")
	manifest, _, _ = strings.Cut(manifest, "  EOF")
	require.NotNil(t, vals(t, manifest)["spec"])

	all := notesOf(everything)
	require.Contains(t, all, "0.8 of kubelet's runtimeRequestTimeout")
	require.Contains(t, all, "at port 19465 for tokens with the cluster role pod-pacemaker-metrics-reader; alerts are installed")
	require.Contains(t, all, "StartPolicies, also with scope: Cluster, also by the labels of namespaces")
	require.Contains(t, all, "pod-pacemaker.io/not-ready")
}
