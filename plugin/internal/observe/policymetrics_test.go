package observe

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// Users name the groups, by values in their pods. Administrators name the resources. If one sample appears twice, a
// scrape gives nothing at all.
func TestNoNameOfAGroupOrAResourceSpoilsTheMetrics(t *testing.T) {
	t.Parallel()
	var policy v1alpha1.StartPolicy
	require.NoError(t, yaml.UnmarshalStrict([]byte(`
metadata: {name: p}
spec:
  selector: {terms: [{podSelector: {}}]}
  groupBy: .metadata.annotations.group
  limits:
    running: {pods: 3}
    starting: {pods: 3, requests: {pods: 5, pacer: 1, cpu: 4}}
    pacer: {exponential: {minInitial: 1, maxStagger: 9, multiplier: 2}}
`), &policy))
	now := time.Now()
	limiter := throttle.New(now, throttle.Settings{})
	set, _ := policies.New(false).WithPolicies(now, policies.Compile([]*v1alpha1.StartPolicy{&policy}))
	limiter.SetPolicies(now, set.Limits())
	run := func(group string, pods int) {
		for i := range pods {
			limiter.SetGroups(now, throttle.PodGroups{
				UID: group + strconv.Itoa(i), Running: true, Ready: true,
				Groups: set.Groups(policies.Pod{Facts: startpolicy.Facts{Values: map[string]string{policy.Spec.GroupBy: group}}}),
			})
		}
	}
	run("large", 3)
	run("small", 1)
	others := []string{"a", "b", "c"}
	for _, group := range others {
		run(group, 2)
	}
	reported := AdminPolicies(set.State(), limiter.Groups(now))
	require.Len(t, reported, 1)
	for _, g := range reported[0].Groups {
		assert.Equal(t, g.Group == "large", slices.Equal(g.Throttled, []string{"running.pods"}), "%+v", g)
		assert.Equal(t, g.Group != "large", len(g.Throttled) == 0, "%+v", g)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(newPolicyMetrics(set.State, limiter.Groups))
	families, err := registry.Gather()
	require.NoError(t, err)
	samples := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			samples[name] = m.GetGauge().GetValue()
		}
	}
	assert.InDelta(t, 3, samples["pod_pacemaker_policy_limit starting p pods"], 0)
	assert.InDelta(t, 4, samples["pod_pacemaker_policy_limit starting p cpu"], 0)
	all := float64(3 + 1 + 2*len(others))
	assert.InDelta(t, all, samples["pod_pacemaker_policy_ready p"], 0)
	assert.InDelta(t, all, samples["pod_pacemaker_policy_used running p pods"], 0)
	assert.InDelta(t, 3, samples["pod_pacemaker_policy_used_most running p pods"], 0)
	assert.InDelta(t, len(others)+2, samples["pod_pacemaker_policy_groups p"], 0)
	for sample := range samples {
		assert.NotContains(t, sample, "large", "anybody on the node may read the metrics, and a group may be a pod")
	}
}
