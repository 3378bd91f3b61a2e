package deploy

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestDaemonMayReadAndWriteEventsOnly(t *testing.T) {
	t.Parallel()
	objects := render(t, "")

	role := only[*rbacv1.ClusterRole](t, objects)
	read := []string{"get", "list", "watch"}
	require.Equal(t, []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods", "nodes"}, Verbs: read},
		{APIGroups: []string{"pod-pacemaker.io"}, Resources: []string{"pacemakerconfigs"}, Verbs: read},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}, role.Rules)

	account := only[*corev1.ServiceAccount](t, objects)
	binding := only[*rbacv1.ClusterRoleBinding](t, objects)
	require.Equal(t, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}, binding.RoleRef)
	require.Equal(t, []rbacv1.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace}}, binding.Subjects)

	pod := only[*appsv1.DaemonSet](t, objects).Spec.Template.Spec
	require.Equal(t, account.Name, pod.ServiceAccountName)
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
	require.Equal(t, "elsewhere", only[*rbacv1.ClusterRoleBinding](t, objects).Subjects[0].Namespace)
	require.Equal(t, "elsewhere", only[*corev1.Namespace](t, objects).Name)
}

// everyContainer returns the init containers and the containers of the pods.
func everyContainer(daemons *appsv1.DaemonSet) []corev1.Container {
	pod := daemons.Spec.Template.Spec
	return append(append([]corev1.Container{}, pod.InitContainers...), pod.Containers...)
}
