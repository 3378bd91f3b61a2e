//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pod-pacemaker/pod-pacemaker/integration/chart"
)

// kickRelease is the name and the namespace of the daemon whose right to kick is tried.
const kickRelease = "kicker"

// The right to kick is a right to patch pods, and the policy that comes with it
// leaves one annotation of it, on the daemon's own node. All that the policy denies
// is tried with every right on pods there is, so that it is the policy that denies it.
func TestKickPolicy(t *testing.T) {
	files, err := chart.Render(chart.Release{Name: kickRelease, Namespace: kickRelease}, map[string]any{
		"fullnameOverride": kickRelease, "kick": map[string]any{"enabled": true},
	})
	require.NoError(t, err)
	manifest := filepath.Join(t.TempDir(), "kick.yaml")
	require.NoError(t, os.WriteFile(manifest, []byte(files["kick.yaml"]), 0o600))
	out, err := node.Kubectl(t.Context(), "apply", "--server-side", "-f", manifest)
	require.NoError(t, err, "%s", out)
	t.Cleanup(func() {
		if out, err := node.Kubectl(context.Background(), "delete", "-f", manifest); err != nil {
			t.Errorf("delete of the policy: %v\n%s", err, out)
		}
	})
	ns := namespace(t)
	createPod(t, ns, "mine", herdPod(0, withoutProbes))
	eventually(t, "the pod is bound", func() bool { return allReady(t, ns, 1) || boundTo(t, ns, "mine") == node.NodeName })

	daemon := &kickTrial{t: t, ns: ns, client: daemonOn(t, node.NodeName)}
	const turn = `{"metadata":{"annotations":{"pod-pacemaker.io/turn":"2026-03-01T12:00:00Z"}}}`
	require.EventuallyWithT(t, func(c *assert.CollectT) { require.NoError(c, daemon.patch("mine", turn)) },
		patience, 100*time.Millisecond, "with the rights that the chart gives")
	assert.True(t, apierrors.IsForbidden(daemon.client.CoreV1().Pods(ns).Delete(t.Context(), "mine", metav1.DeleteOptions{})), "delete is no right of it")

	allRightsOnPods(t)
	eventually(t, "the policy is in force, and the rights are", func() bool {
		err := daemon.client.CoreV1().Pods(ns).Delete(t.Context(), "mine", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), kickRelease+"-kick")
	})
	require.NoError(t, daemon.patch("mine", turn), "with the policy")
	daemon.denied("no annotation but", "mine", `{"metadata":{"annotations":{"pod-pacemaker.io/skip":"true"}}}`)
	daemon.denied("is a time", "mine", `{"metadata":{"annotations":{"pod-pacemaker.io/turn":"`+string(make65())+`"}}}`)
	for what, patch := range map[string]string{
		"labels":      `{"metadata":{"labels":{"app":"x"}}}`,
		"finalizers":  `{"metadata":{"finalizers":["example.test/x"]}}`,
		"owner":       `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"y"}]}}`,
		"image":       `{"spec":{"containers":[{"name":"app","image":"example.test/evil"}]}}`,
		"deadline":    `{"spec":{"activeDeadlineSeconds":5}}`,
		"with a turn": `{"metadata":{"labels":{"app":"x"},"annotations":{"pod-pacemaker.io/turn":"now"}}}`,
	} {
		t.Log(what)
		daemon.deniedStrategic("nothing of a pod but", "mine", patch)
	}
	createElsewhere(t, ns, "other")
	daemon.denied("only pods of the node", "other", turn)
	daemon.subresources()
	(&kickTrial{t: t, ns: ns, client: daemonOn(t, "another")}).denied("only pods of the node", "mine", turn)
	(&kickTrial{t: t, ns: ns, client: daemonOn(t, "")}).denied("only pods of the node", "mine", turn)
	require.NoError(t, daemon.patch("mine", turn))
	require.NoError(t, daemon.patch("mine", `{"metadata":{"annotations":{"pod-pacemaker.io/turn":null}}}`))
}

// createElsewhere makes a pod on a node that does not exist: no kubelet is there to end
// it, and the garbage collector of pods ends it after some time.
func createElsewhere(t *testing.T, ns, name string) {
	t.Helper()
	createPod(t, ns, name, herdPod(0, func(s *corev1.PodSpec) { s.NodeName = "elsewhere" }))
	t.Cleanup(func() {
		now := int64(0)
		err := node.Client().CoreV1().Pods(ns).Delete(context.Background(), name, metav1.DeleteOptions{GracePeriodSeconds: &now})
		assert.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
	})
}

func make65() []byte {
	long := make([]byte, 65)
	for i := range long {
		long[i] = 'x'
	}
	return long
}

func boundTo(t *testing.T, ns, name string) string {
	t.Helper()
	pod, err := node.Client().CoreV1().Pods(ns).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return pod.Spec.NodeName
}

// daemonOn gives the API as the daemon on a node sees it: its token names the node.
// The empty name is a token without one.
func daemonOn(t *testing.T, name string) kubernetes.Interface {
	t.Helper()
	config := rest.CopyConfig(node.RESTConfig())
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + kickRelease + ":" + kickRelease}
	if name != "" {
		config.Impersonate.Extra = map[string][]string{"authentication.kubernetes.io/node-name": {name}}
	}
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return client
}

// allRightsOnPods gives the daemon more than the chart does.
func allRightsOnPods(t *testing.T) {
	t.Helper()
	api := node.Client().RbacV1()
	const name = "e2e-all-rights-on-pods"
	_, err := api.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"*"}, Verbs: []string{"*"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = api.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: kickRelease, Name: kickRelease}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, api.ClusterRoleBindings().Delete(context.Background(), name, metav1.DeleteOptions{}))
		assert.NoError(t, api.ClusterRoles().Delete(context.Background(), name, metav1.DeleteOptions{}))
	})
}

// kickTrial tries what the daemon may do to pods.
type kickTrial struct {
	t      *testing.T
	ns     string
	client kubernetes.Interface
}

func (k *kickTrial) patchAs(kind types.PatchType, pod, text string, subresources ...string) error {
	ctx, cancel := context.WithTimeout(k.t.Context(), 30*time.Second)
	defer cancel()
	_, err := k.client.CoreV1().Pods(k.ns).Patch(ctx, pod, kind, []byte(text), metav1.PatchOptions{}, subresources...)
	return err
}

func (k *kickTrial) patch(pod, text string) error { return k.patchAs(types.MergePatchType, pod, text) }

func (k *kickTrial) denied(says, pod, text string) {
	k.t.Helper()
	assert.ErrorContains(k.t, k.patch(pod, text), says)
}

// deniedStrategic is denied, with a patch that adds to lists.
func (k *kickTrial) deniedStrategic(says, pod, text string) {
	k.t.Helper()
	assert.ErrorContains(k.t, k.patchAs(types.StrategicMergePatchType, pod, text), says)
}

// subresources tries all ways to a pod that are no patch of it.
func (k *kickTrial) subresources() {
	k.t.Helper()
	const says = "may do nothing to a pod but change its annotation"
	ctx, pods := k.t.Context(), k.client.CoreV1().Pods(k.ns)
	_, created := pods.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "new"}, Spec: herdPod(0)}, metav1.CreateOptions{})
	for what, err := range map[string]error{
		"delete":     pods.Delete(ctx, "mine", metav1.DeleteOptions{}),
		"delete all": pods.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
		"evict":      pods.EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}),
		"status":     k.patchAs(types.MergePatchType, "mine", `{"status":{"phase":"Failed"}}`, "status"),
		"debug": k.patchAs(types.StrategicMergePatchType, "mine",
			`{"spec":{"ephemeralContainers":[{"name":"x","image":"example.test/x"}]}}`, "ephemeralcontainers"),
		"create": created,
		"exec": k.client.CoreV1().RESTClient().Post().Namespace(k.ns).Resource("pods").Name("mine").SubResource("exec").
			Param("command", "true").Do(ctx).Error(),
	} {
		require.ErrorContains(k.t, err, says, what)
	}
}
