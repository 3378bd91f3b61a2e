package chart

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/yaml"
)

// switches are values that change what is rendered, each by its path. Other switches need the first.
var switches = []struct {
	path  string
	value any
}{
	{"metricsProxy.enabled", true},
	{"startPolicies.monitoring", true},
	{"startPolicies.namespaceLabels", true},
	{"startPolicies.clusterScope", true},
	{"podMonitor.enabled", true},
	{"prometheusRule.enabled", true},
	{"dashboard.enabled", true},
	{"startupTaint.enabled", true},
	{"waitingRoom.mode", "off"},
	{"kubeletConfig", []any{"/var/lib/kubelet/config.yaml"}},
	{"apiServer.host", "10.0.0.1"},
	{"gate.mode", "never"},
	{"refuseAt", "container"},
	{"instance", "second"},
	{"fullnameOverride", "pacer"},
	{"crds.install", false},
	{"namespace.create", true},
	{"ownNode.policy", false},
	{"nameOverride", "pacer"},
	{"rbac.create", false},
	{"defaultConfig", map[string]any{"throttleConfig": map[string]any{"maxConcurrent": map[string]any{"value": 2}}}},
	{"processIO", true},
	{"metricsProxy.certificate.secret", "metrics-tls"},
	{"metricsProxy.why", true},
	{"image.digest", "sha256:" + strings.Repeat("0", 64)},
}

// with returns the values in which these switches are set.
func with(set ...int) map[string]any {
	values := map[string]any{}
	for _, i := range set {
		at, path := values, strings.Split(switches[i].path, ".")
		for _, key := range path[:len(path)-1] {
			inner, _ := at[key].(map[string]any)
			if inner == nil {
				inner = map[string]any{}
			}
			at[key], at = inner, inner
		}
		at[path[len(path)-1]] = switches[i].value
	}
	return values
}

// With each switch, the objects are complete, each role is bound, and the notes have no gap.
func TestEachSwitchRendersACompleteRelease(t *testing.T) {
	t.Parallel()
	all := make([]int, 0, len(switches))
	for i, s := range switches {
		all = append(all, i)
		t.Run(s.path, func(t *testing.T) {
			t.Parallel()
			wholeRelease(t, with(0, i))
		})
	}
	wholeRelease(t, with(all...))
}

func wholeRelease(t *testing.T, set map[string]any) {
	t.Helper()
	text, err := yaml.Marshal(set)
	require.NoError(t, err)
	values := string(text)
	all := objects(t, values)
	var names, roles, bound []string
	for _, object := range all {
		m, err := meta.Accessor(object)
		require.NoError(t, err)
		names = append(names, fmt.Sprintf("%T %s/%s", object, m.GetNamespace(), m.GetName()))
		switch o := object.(type) {
		case *rbacv1.ClusterRole:
			roles = append(roles, o.Name)
		case *rbacv1.Role:
			roles = append(roles, o.Name)
		case *rbacv1.ClusterRoleBinding:
			bound = append(bound, o.RoleRef.Name)
		case *rbacv1.RoleBinding:
			bound = append(bound, o.RoleRef.Name)
		}
	}
	slices.Sort(names)
	require.Len(t, slices.Compact(slices.Clone(names)), len(names), "%s: an object twice: %v", values, names)
	for _, role := range roles {
		if !strings.HasSuffix(role, "-metrics-reader") && !strings.HasSuffix(role, "-why") { // whoever reads or asks is bound by hand
			require.Contains(t, bound, role, values)
		}
	}
	for _, role := range bound {
		require.Contains(t, roles, role, values)
	}
	files, err := renderAll(Release{Name: "pod-pacemaker", Namespace: "pacing"}, set)
	require.NoError(t, err)
	notes := files["templates/NOTES.txt"]
	require.Contains(t, notes, "In force:")
	for _, gap := range []string{"<no value>", "%!", "<nil>", " \n", "\n\n\n", "map["} {
		require.NotContains(t, notes, gap, values)
	}
}

// The waiting room's files have one name on a node: of several daemons, the one without an instance has them.
func TestADaemonWithAnInstanceHasNoWaitingRoom(t *testing.T) {
	t.Parallel()
	pod := daemon(t, "instance: second")
	require.Subset(t, pod.Containers[0].Args, []string{"--instance=second", "--cni=off"})
	for _, mount := range pod.Containers[0].VolumeMounts {
		require.NotContains(t, mount.Name, "cni")
	}
	for _, on := range []any{"on", true} {
		_, err := Render(Release{Name: "pod-pacemaker", Namespace: "pacing"}, map[string]any{"instance": "second", "waitingRoom": map[string]any{"mode": on}})
		require.ErrorContains(t, err, "waitingRoom.mode: on needs a release without an instance")
	}
}

// A switch without the switch that it needs is refused, and the error names the latter.
func TestASwitchWithoutItsPrerequisiteIsRefused(t *testing.T) {
	t.Parallel()
	for path, needs := range map[string]string{
		"podMonitor.enabled": "metricsProxy.enabled", "metricsProxy.why": "metricsProxy.enabled", "prometheusRule.enabled": "metricsProxy.enabled",
	} {
		for i, s := range switches {
			if s.path == path {
				_, err := Render(Release{Name: "pod-pacemaker", Namespace: "pacing"}, with(i))
				require.ErrorContains(t, err, needs, path)
			}
		}
	}
}
