package startpolicy

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// policy reads a spec.
func policy(t *testing.T, spec string) *v1alpha1.StartPolicy {
	t.Helper()
	p := &v1alpha1.StartPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &p.Spec))
	return p
}

func compile(t *testing.T, spec string) *Policy {
	t.Helper()
	return Compile(policy(t, spec))
}

func pod(edit ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", Labels: map[string]string{"app": "web", "app.kubernetes.io/name": "Web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "nginx:1.14.2"}, {Name: "side", Image: "envoy:1"}}},
	}
	for _, e := range edit {
		e(p)
	}
	return p
}

// matches takes from a pod the facts that the policy needs, and matches them.
func matches(p *Policy, of *corev1.Pod, namespace map[string]string) (Match, bool) {
	var needs Needs
	needs.Add(p)
	return p.Match(FactsOf(of, needs), namespace)
}

func TestTermsAreAlternativesOfWhichBothSelectorsMustHold(t *testing.T) {
	t.Parallel()
	p := compile(t, `
selector:
  terms:
    - podSelector: {matchLabels: {app: web}, matchExpressions: [{key: tier, operator: NotIn, values: [back]}]}
      namespaceSelector: {matchExpressions: [{key: paced, operator: In, values: ["yes", "true"]}]}
    - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: batch}}
bypassSelector: {matchExpressions: [{key: urgent, operator: Exists}]}
limits: {running: {pods: 1}}`)
	assert.True(t, p.NeedsNamespaces)
	paced := map[string]string{"paced": "true"}
	label := func(key, value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Labels[key] = value }
	}
	for _, c := range []struct {
		name      string
		pod       *corev1.Pod
		namespace map[string]string
		want      bool
	}{
		{"both", pod(), paced, true},
		{"another namespace", pod(), map[string]string{"paced": "no"}, false},
		{"another tier", pod(label("tier", "back")), paced, false},
		{"a good tier", pod(label("tier", "front")), paced, true},
		{"another app", pod(label("app", "db")), paced, false},
		{"the second term", pod(label("app", "db")), map[string]string{corev1.LabelMetadataName: "batch"}, true},
	} {
		m, ok := matches(p, c.pod, c.namespace)
		assert.Equal(t, c.want, ok, c.name)
		assert.Equal(t, Match{}, m, c.name)
	}
	m, ok := matches(p, pod(label("urgent", "")), paced)
	assert.True(t, ok)
	assert.True(t, m.Bypass)
}

func TestOnlyTheNameOfANamespaceNeedsNoWatch(t *testing.T) {
	t.Parallel()
	const spec = "selector: {terms: [{namespaceSelector: %}]}\nlimits: {running: {pods: 1}}"
	for selector, needs := range map[string]bool{
		"{}": false,
		"{matchLabels: {kubernetes.io/metadata.name: a}}":                                     false,
		"{matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [a]}]}": false,
		"{matchLabels: {team: a}}":                                                            true,
		"{matchExpressions: [{key: team, operator: Exists}]}":                                 true,
	} {
		assert.Equal(t, needs, compile(t, strings.Replace(spec, "%", selector, 1)).NeedsNamespaces, selector)
	}
}

func TestRequestsAreSummedUpAsKubeletDoes(t *testing.T) {
	t.Parallel()
	always := corev1.ContainerRestartPolicyAlways
	asks := func(name, cpu, memory string) corev1.Container {
		c := corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{}}}
		if cpu != "" {
			c.Resources.Requests["cpu"] = resource.MustParse(cpu)
		}
		if memory != "" {
			c.Resources.Requests["memory"] = resource.MustParse(memory)
		}
		return c
	}
	sidecar := asks("proxy", "50m", "")
	sidecar.RestartPolicy = &always
	f := FactsOf(pod(func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{asks("setup", "700m", "64Mi"), sidecar, asks("late", "100m", "")}
		p.Spec.Containers = []corev1.Container{asks("app", "200m", "512Mi"), asks("extra", "100m", "")}
		p.Spec.Overhead = corev1.ResourceList{"cpu": resource.MustParse("10m"), "nvidia.com/gpu": resource.MustParse("2")}
	}), Needs{})
	assert.Equal(t, map[string]int64{"cpu": 710, "memory": 512 << 20 * 1000, "nvidia.com/gpu": 2000}, f.Requests)

	f = FactsOf(pod(func(p *corev1.Pod) { p.Spec.Containers = []corev1.Container{asks("app", "", "8Ei")} }), Needs{})
	assert.Equal(t, map[string]int64{"memory": MostRequest}, f.Requests)
	assert.Nil(t, FactsOf(pod(), Needs{}).Requests)
}

func TestAmountsAreReadable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		milli int64
		want  string
	}{
		{"cpu", 1500, "1500m"},
		{"cpu", 2000, "2"},
		{"memory", 512 << 20 * 1000, "512Mi"},
		{"memory", 1_000_000 * 1000, "1000000"},
		{"memory", 1, "1m"},
		{"hugepages-2Mi", 4 << 20 * 1000, "4Mi"},
		{"nvidia.com/gpu", 2000, "2"},
	} {
		text := Amount(c.name, c.milli)
		assert.Equal(t, c.want, text, c.name)
		amount := resource.MustParse(text)
		assert.Equal(t, c.milli, amount.MilliValue())
	}
}

// While a pod is resized in place, it has what it had until kubelet has changed that, as for the scheduler.
func TestAPodThatIsResizedRequestsWhatTheSchedulerCounts(t *testing.T) {
	t.Parallel()
	cpu := func(amount string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
	}
	for name, c := range map[string]struct {
		spec, allocated string
		why             string
		milli           int64
	}{
		"it shrinks":         {"1", "4", "", 4000},
		"it cannot grow":     {"64", "1", corev1.PodReasonInfeasible, 1000},
		"it grows":           {"4", "1", "", 4000},
		"it was not resized": {"2", "2", "", 2000},
	} {
		pod := &corev1.Pod{}
		pod.Spec.Containers = []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{Requests: cpu(c.spec)}}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "app", AllocatedResources: cpu(c.allocated), Resources: &corev1.ResourceRequirements{Requests: cpu(c.allocated)},
		}}
		if c.why != "" {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: c.why}}
		}
		require.Equal(t, c.milli, FactsOf(pod, Needs{}).Requests["cpu"], name)
	}
}
