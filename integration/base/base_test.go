package base

import (
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// Every right is listed here, in a role for each purpose.
func TestRightsAreTheseAndNoOthers(t *testing.T) {
	t.Parallel()
	objects := render(t, "")
	account := only[*corev1.ServiceAccount](t, objects)
	require.Equal(t, account.Name, only[*appsv1.DaemonSet](t, objects).Spec.Template.Spec.ServiceAccountName)

	read := []string{"get", "list", "watch"}
	rights := map[string][]rbacv1.PolicyRule{
		"pod-pacemaker-pods": {
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: read[1:]},
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: read},
		},
		"pod-pacemaker-configs": {{APIGroups: []string{"pod-pacemaker.io"}, Resources: []string{"pacemakerconfigs", "startpolicies"}, Verbs: read}},
		"pod-pacemaker-events":  {{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}}},
		"pod-pacemaker-report": {
			{APIGroups: []string{"pod-pacemaker.io"}, Resources: []string{"pacemakernodes"}, Verbs: []string{"create"}},
			{APIGroups: []string{"pod-pacemaker.io"}, Resources: []string{"pacemakernodes/status"}, Verbs: []string{"patch"}},
		},
		"pod-pacemaker-summary": {
			{APIGroups: []string{"pod-pacemaker.io"}, Resources: []string{"pacemakernodes"}, Verbs: []string{"list"}},
			{APIGroups: []string{"pod-pacemaker.io"}, Resources: []string{"pacemakerconfigs/status", "startpolicies/status"}, Verbs: []string{"patch"}},
		},
	}
	got := map[string][]rbacv1.PolicyRule{}
	for _, role := range every[*rbacv1.ClusterRole](objects) {
		got[role.Name] = role.Rules
	}
	require.Equal(t, rights, got)
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace}}
	bindings := every[*rbacv1.ClusterRoleBinding](objects)
	require.Len(t, bindings, len(rights))
	for _, binding := range bindings {
		require.Contains(t, rights, binding.RoleRef.Name)
		require.Equal(t, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: binding.Name}, binding.RoleRef)
		require.Equal(t, subjects, binding.Subjects)
	}

	inNamespace := map[string][]rbacv1.PolicyRule{
		"pod-pacemaker-turns": {
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{"pod-pacemaker-summary"}, Verbs: []string{"get", "update"}},
		},
		"pod-pacemaker-uninstall": {
			{APIGroups: []string{"apps"}, Resources: []string{"daemonsets"}, ResourceNames: []string{"pod-pacemaker"}, Verbs: []string{"get"}},
		},
	}
	for _, role := range every[*rbacv1.Role](objects) {
		require.Equal(t, inNamespace[role.Name], role.Rules, role.Name)
	}
	inNamespaceTo := every[*rbacv1.RoleBinding](objects)
	require.Len(t, inNamespaceTo, len(inNamespace))
	for _, binding := range inNamespaceTo {
		require.Contains(t, inNamespace, binding.RoleRef.Name)
		require.Equal(t, account.Namespace, binding.Namespace)
		require.Equal(t, subjects, binding.Subjects)
	}
}

func TestOverlayNamesTheImageAndTheNamespace(t *testing.T) {
	t.Parallel()
	objects := render(t, `
namespace: elsewhere
images: [{name: pod-pacemaker, newName: example.test/team/pod-pacemaker, newTag: v1}]
`)
	daemons := only[*appsv1.DaemonSet](t, objects)
	require.Equal(t, "elsewhere", daemons.Namespace)
	for _, container := range everyContainer(daemons) {
		require.Equal(t, "example.test/team/pod-pacemaker:v1", container.Image, container.Name)
	}
	for _, binding := range every[*rbacv1.ClusterRoleBinding](objects) {
		require.Equal(t, "elsewhere", binding.Subjects[0].Namespace)
	}
	require.Equal(t, "elsewhere", only[*corev1.Namespace](t, objects).Name)
	// kustomize changes no namespace within an expression, so the policy must know the daemon without.
	for _, policy := range every[*admissionv1.ValidatingAdmissionPolicy](objects) {
		require.NotEmpty(t, policy.Spec.MatchConditions, policy.Name)
		require.NotContains(t, policy.Spec.MatchConditions[0].Expression, "serviceaccount:pod-pacemaker:", "%s would not match the daemon elsewhere", policy.Name)
	}
}

// everyContainer returns the init containers and the containers of the pods.
func everyContainer(daemons *appsv1.DaemonSet) []corev1.Container {
	pod := daemons.Spec.Template.Spec
	return append(append([]corev1.Container{}, pod.InitContainers...), pod.Containers...)
}
