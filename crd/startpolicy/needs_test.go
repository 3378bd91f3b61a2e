package startpolicy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

// The facts of a pod hold only what policies name, in any of their fields.
func TestFactsHaveWhatPoliciesName(t *testing.T) {
	t.Parallel()
	const all = `
selector:
  terms:
    - podSelector: {matchLabels: {app: web}, matchExpressions: [{key: tier, operator: NotIn, values: [back]}]}
    - podSelector: {matchExpressions: [{key: team, operator: Exists}]}
bypassSelector: {matchLabels: {urgent: "yes"}}
groupBy: .metadata.annotations.pool
limits: {starting: {pods: 1}}`
	var none, some, every Needs
	some.Add(compile(t, "selector: {terms: [{podSelector: {matchLabels: {app: web}}}]}\nlimits: {running: {pods: 1}}"))
	every.Add(compile(t, all))
	p := pod(func(p *corev1.Pod) {
		p.Labels = map[string]string{"app": "web", "tier": "front", "team": "a", "urgent": "no", "other": "x"}
		p.Annotations = map[string]string{"pool": "blue", "note": "long"}
	})
	assert.Equal(t, Facts{}, FactsOf(p, none))
	assert.Equal(t, Facts{Labels: map[string]string{"app": "web"}}, FactsOf(p, some))
	assert.Equal(t, Facts{
		Labels: map[string]string{"app": "web", "tier": "front", "team": "a", "urgent": "no"},
		Values: map[string]string{".metadata.annotations.pool": "blue"},
	}, FactsOf(p, every))
	assert.True(t, every.Covers(some) && every.Covers(none) && some.Covers(none) && none.Covers(none) && every.Covers(every))
	assert.False(t, some.Covers(every) || none.Covers(some))
	for _, more := range []string{
		"selector: {terms: [{podSelector: {matchLabels: {stage: a}}}]}\nlimits: {running: {pods: 1}}",
		"selector: {terms: [{podSelector: {}}]}\nbypassSelector: {matchLabels: {stage: a}}\nlimits: {running: {pods: 1}}",
		"selector: {terms: [{podSelector: {}}]}\ngroupBy: .spec.hostname\nlimits: {running: {pods: 1}}",
	} {
		var n Needs
		n.Add(compile(t, more))
		assert.False(t, every.Covers(n), more)
	}
}
