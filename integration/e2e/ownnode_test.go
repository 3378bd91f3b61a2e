//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pod-pacemaker/pod-pacemaker/integration/chart"
)

// ownNodeRelease is the name and the namespace of the daemon whose rights the scenario tries.
const ownNodeRelease = "teller"

// onlyOwnNode is the policy's message about a PacemakerNode of another node.
const onlyOwnNode = "only the PacemakerNode of the node it runs on"

// onlyOwnEvents is the policy's message about an event with another source.
const onlyOwnEvents = "only events whose source is itself"

var pacemakerNodes = schema.GroupVersionResource{Group: "pod-pacemaker.io", Version: "v1alpha1", Resource: "pacemakernodes"}

// With the chart's rights and its policy, a daemon writes the PacemakerNode of its own node and no
// other, and can do nothing that it has no right to.
func TestRightsOfTheDaemon(t *testing.T) {
	applyRights(t)
	own, other := ownNodeConfig("own"), ownNodeConfig("other")
	api := dynamicOf(t, own).Resource(pacemakerNodes)
	eventually(t, "the policy is in force", func() bool {
		_, err := api.Create(t.Context(), pacemakerNode("other"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), onlyOwnNode)
	})
	for _, client := range []*rest.Config{own, other, ownNodeConfig("")} {
		_, err := dynamicOf(t, client).Resource(pacemakerNodes).Create(t.Context(), pacemakerNode("third"), metav1.CreateOptions{})
		require.ErrorContains(t, err, onlyOwnNode)
	}
	_, err := api.Create(t.Context(), pacemakerNode("own"), metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, dynamicOf(t, node.RESTConfig()).Resource(pacemakerNodes).Delete(context.Background(), "own", metav1.DeleteOptions{}))
	})
	status := []byte(`{"status":{"version":"v1"}}`)
	_, err = api.Patch(t.Context(), "own", types.MergePatchType, status, metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	_, err = dynamicOf(t, other).Resource(pacemakerNodes).Patch(t.Context(), "own", types.MergePatchType, status, metav1.PatchOptions{}, "status")
	require.ErrorContains(t, err, onlyOwnNode)

	client, err := kubernetes.NewForConfig(own)
	require.NoError(t, err)
	_, err = client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=own"})
	require.NoError(t, err)
	event := func(name, host string) *corev1.Event {
		return &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: name}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "x"},
			Source: corev1.EventSource{Component: "pod-pacemaker", Host: host},
		}
	}
	events := client.CoreV1().Events("default")
	eventually(t, "the policy about events is in force", func() bool {
		_, err := events.Create(t.Context(), event("of-another", "other"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), onlyOwnEvents)
	})
	admin := node.Client().CoreV1().Events("default")
	for name, host := range map[string]string{"of-teller": "own", "of-another": "other"} {
		by := events
		if host != "own" {
			by = admin
		}
		_, err = by.Create(t.Context(), event(name, host), metav1.CreateOptions{})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, admin.Delete(context.Background(), name, metav1.DeleteOptions{})) })
	}
	_, err = events.Patch(t.Context(), "of-teller", types.StrategicMergePatchType, []byte(`{"count":2}`), metav1.PatchOptions{})
	require.NoError(t, err)
	for _, change := range []string{`{"count":2}`, `{"source":{"host":"own"}}`} {
		_, err = events.Patch(t.Context(), "of-another", types.StrategicMergePatchType, []byte(change), metav1.PatchOptions{})
		require.ErrorContains(t, err, onlyOwnEvents)
	}
	leases := client.CoordinationV1().Leases(ownNodeRelease)
	_, err = leases.Create(t.Context(), slot("p-0", "other"), metav1.CreateOptions{})
	require.ErrorContains(t, err, "only Leases that the node it runs on holds", "without the scope Cluster, too")
	_, err = client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=Pod,reason=Evicted"})
	assertForbidden(t, err)
	assertForbidden(t, client.CoreV1().Events("default").Delete(t.Context(), "x", metav1.DeleteOptions{}))
	_, err = client.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
	assertForbidden(t, err)
	_, err = client.CoreV1().Nodes().Patch(t.Context(), node.NodeName, types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
	assertForbidden(t, err)
	_, err = client.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
	assertForbidden(t, err)
	_, err = client.CoreV1().Pods("default").Patch(t.Context(), "x", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
	assertForbidden(t, err)
	assertForbidden(t, api.Delete(t.Context(), "own", metav1.DeleteOptions{}))
	_, err = api.Patch(t.Context(), "own", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
	assertForbidden(t, err)
}

func assertForbidden(t *testing.T, err error) {
	t.Helper()
	assert.True(t, apierrors.IsForbidden(err), "%v", err)
}

// applyRights applies the chart's roles and the policy of the own node.
func applyRights(t *testing.T) {
	t.Helper()
	files, err := chart.Render(chart.Release{Name: ownNodeRelease, Namespace: ownNodeRelease}, map[string]any{
		"fullnameOverride": ownNodeRelease, "ownNode": map[string]any{"policy": true}, "namespace": map[string]any{"create": true},
	})
	require.NoError(t, err)
	manifest := filepath.Join(t.TempDir(), "rights.yaml")
	all := files["namespace.yaml"] + "\n---\n" + files["rbac.yaml"] + "\n---\n" + files["ownnode.yaml"]
	require.NoError(t, os.WriteFile(manifest, []byte(all), 0o600))
	out, err := node.Kubectl(t.Context(), "apply", "--server-side", "-f", manifest)
	require.NoError(t, err, "%s", out)
	t.Cleanup(func() {
		if out, err := node.Kubectl(context.Background(), "delete", "-f", manifest); err != nil {
			t.Errorf("delete of the rights: %v\n%s", err, out)
		}
	})
}

// ownNodeConfig returns the access of the daemon on a node. Its token names no node if name is
// empty.
func ownNodeConfig(name string) *rest.Config {
	config := rest.CopyConfig(node.RESTConfig())
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + ownNodeRelease + ":" + ownNodeRelease}
	if name != "" {
		config.Impersonate.Extra = map[string][]string{"authentication.kubernetes.io/node-name": {name}}
	}
	return config
}

func dynamicOf(t *testing.T, config *rest.Config) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	return client
}

// pacemakerNode returns an object as a daemon creates it.
func pacemakerNode(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "pod-pacemaker.io/v1alpha1", "kind": "PacemakerNode", "metadata": map[string]any{"name": name},
	}}
}
