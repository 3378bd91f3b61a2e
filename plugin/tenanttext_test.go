package plugin

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// A tenant's annotation names a group. Whatever the tenant writes there, it is a line of printable text wherever the daemon
// names the group.
func TestWhatATenantWritesIsData(t *testing.T) {
	t.Parallel()
	evil := "\x1b]0;x\a\u009b31m\u202egnp\r\nroot# \xff" + strings.Repeat("A", 64<<10)
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: name, UID: types.UID(name), ResourceVersion: "1", Labels: map[string]string{"paced": "yes"},
				Annotations: map[string]string{"team": evil},
			},
			Spec: corev1.PodSpec{NodeName: "node", RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{Name: "app"}}},
		}
	}
	c := newAPINode(t, pod("a1"), pod("a2"))
	log := c.logged()
	policy := imagePolicy(1)
	require.NoError(t, unstructured.SetNestedField(policy.Object, ".metadata.annotations.team", "spec", "groupBy"))
	_, err := c.dynamic.Resource(v1alpha1.PolicyResource).Create(c.ctx, policy, metav1.CreateOptions{})
	require.NoError(t, err)
	c.eventually("the pods are grouped", func() bool {
		one, known := c.d.cluster.watch.Get("a1")
		two, alsoKnown := c.d.cluster.watch.Get("a2")
		return known && alsoKnown && one.Facts != nil && two.Facts != nil && len(c.d.Status().Policies) == 1
	})
	c.known("a1").runs().startsNow("app")
	refusal := c.known("a2").run()

	outputs := map[string]string{"refusal": refusal.Error(), "log": log()}
	asJSON := func(name string, value any) {
		text, err := json.Marshal(value)
		require.NoError(t, err)
		outputs[name] = string(text)
	}
	why, err := c.d.Status().Why("default", "a2")
	require.NoError(t, err)
	outputs["held"] = why.Held.Detail
	asJSON("status", c.d.Status())
	asJSON("PacemakerNode", c.d.nodeStatus())
	metrics := httptest.NewRecorder()
	promhttp.HandlerFor(c.d.metrics(), promhttp.HandlerOpts{}).ServeHTTP(metrics, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	outputs["metrics"] = metrics.Body.String()
	for name, text := range outputs {
		require.NotEmpty(t, text, name)
		assert.True(t, utf8.ValidString(text), name)
		assert.False(t, strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' }), "%s: %q", name, text)
		assert.NotContains(t, text, `\u00`, name)
		assert.NotContains(t, text, "\nroot#", name)
		assert.NotContains(t, text, strings.Repeat("A", 254), name)
	}
	for _, name := range []string{"held", "status", "PacemakerNode"} {
		assert.Contains(t, outputs[name], "]0;x 31m gnp root# ", name)
	}
}
