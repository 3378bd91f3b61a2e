package plugin

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// imagePolicy lets one pod of each image run.
func imagePolicy(generation int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.PolicyKind,
		"metadata": map[string]any{"name": "images", "uid": "uid-of-images", "generation": generation},
		"spec": map[string]any{
			"selector": map[string]any{"terms": []any{map[string]any{"podSelector": map[string]any{"matchLabels": map[string]any{"paced": "yes"}}}}},
			"groupBy":  ".spec.containers[0].image",
			"limits":   map[string]any{"running": map[string]any{"pods": generation}},
		},
	}}
}

// The labels of namespaces are watched once a policy needs them.
func TestAPolicyOfTheAPIServerSelectsByLabelsOfNamespaces(t *testing.T) {
	t.Parallel()
	c := newAPINode(t)
	policy := imagePolicy(1)
	terms := []any{map[string]any{"namespaceSelector": map[string]any{"matchLabels": map[string]any{"team": "a"}}}}
	require.NoError(t, unstructured.SetNestedSlice(policy.Object, terms, "spec", "selector", "terms"))
	_, err := c.dynamic.Resource(v1alpha1.PolicyResource).Create(c.ctx, policy, metav1.CreateOptions{})
	require.NoError(t, err)
	c.eventually("the labels are known", func() bool {
		p := c.d.Status().Policies
		return len(p) == 1 && p[0].Fault == ""
	})
}

// A new policy groups pods that exist already, whose facts the watch had not kept, and the status of the policy shows that.
func TestAPolicyOfTheAPIServerGroupsPodsThatAreKnown(t *testing.T) {
	t.Parallel()
	pod := func(name, image string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: name, UID: types.UID(name), ResourceVersion: "1", Labels: map[string]string{"paced": "yes"},
			},
			Spec: corev1.PodSpec{
				NodeName: "node", RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{Name: "app", Image: image}},
			},
		}
	}
	c := newAPINode(t, pod("a1", "a"), pod("a2", "a"), pod("b1", "b"))
	_, err := c.dynamic.Resource(v1alpha1.Resource).Update(c.ctx, limitOf(2, 9), metav1.UpdateOptions{})
	require.NoError(t, err)
	c.eventually("no other limit holds the pods", func() bool { return c.d.Status().Config.Generation == 2 })
	c.eventually("the pods are known", func() bool { return c.d.cluster.watch.Healthy() })
	c.known("a1").runs().startsNow("app")

	_, err = c.dynamic.Resource(v1alpha1.PolicyResource).Create(c.ctx, imagePolicy(1), metav1.CreateOptions{})
	require.NoError(t, err)
	c.eventually("the running pod counts in its group", func() bool {
		p := c.d.Status().Policies
		return len(p) == 1 && len(p[0].Groups) == 1 && p[0].Groups[0].Group == "a" && p[0].Groups[0].Used.Running.Pods == 1
	})
	c.eventually("the others are grouped, too", func() bool {
		for _, uid := range []string{"a1", "a2", "b1"} {
			if p, known := c.d.cluster.watch.Get(uid); !known || p.Facts == nil {
				return false
			}
		}
		return true
	})
	second := c.known("a2")
	require.Error(t, second.run())
	second.becomes(throttle.Waiting, reasons.PolicyRunning)
	why, err := c.d.Status().Why("default", "a2")
	require.NoError(t, err)
	assert.Equal(t, "images", why.Held.Policy)
	assert.Equal(t, "a", why.Held.Group)
	c.known("b1").runs().startsNow("app")

	told := c.d.nodeStatus().Policies
	require.Len(t, told, 1)
	assert.Equal(t, "images", told[0].Name)
	assert.EqualValues(t, 1, told[0].Generation)
	require.Len(t, told[0].Groups, 2)
	assert.Equal(t, []string{"running.pods"}, told[0].Groups[0].Throttled)
	assert.EqualValues(t, 1, told[0].Groups[0].Waiting)

	_, err = c.dynamic.Resource(v1alpha1.PolicyResource).Update(c.ctx, imagePolicy(2), metav1.UpdateOptions{})
	require.NoError(t, err)
	c.eventually("the new version is in force", func() bool { return c.d.Status().Policies[0].Generation == 2 })
	second.runs().startsNow("app")
}

// A file may hold policies beside the configuration, or alone.
func TestPoliciesOfAFileAreInForce(t *testing.T) {
	t.Parallel()
	n := unconnectedNode(t, noLimit, standalone)
	path := writeConfig(t, noLimit)
	config, err := os.ReadFile(path)
	require.NoError(t, err)
	config = append(config, []byte("\n---\napiVersion: pod-pacemaker.io/v1alpha1\nkind: StartPolicy\nmetadata: {name: t1}\nspec: "+t1+"\n")...)
	require.NoError(t, os.WriteFile(path, config, 0o600))
	n.options.ConfigFile = path
	d, err := newWith(n.options, slowly())
	require.NoError(t, err)
	require.NoError(t, n.rt.Start())
	n.runs(d)
	n.connected()
	n.eventually("the policy is in force", func() bool { return len(d.Status().Policies) == 1 })
	assert.Empty(t, d.Status().Policies[0].Fault)
}
