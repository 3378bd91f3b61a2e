package crd

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

func converted(t *testing.T, text string) Converted {
	t.Helper()
	all := Convert([]byte(text))
	require.Len(t, all, 1)
	return all[0]
}

const throttle = `
apiVersion: schedule.k8s.everpeace.github.com/v1alpha1
kind: Throttle
metadata: {name: t1, namespace: team, labels: {app.kubernetes.io/managed-by: Helm}}
spec:
  throttlerName: kube-throttler
  selector:
    selecterTerms:
    - podSelector: {matchLabels: {throttle: t1}}
  threshold:
    resourceCounts: {pod: 3}
    resourceRequests: {cpu: 200m, memory: 1Gi, nvidia.com/gpu: "2"}
  temporaryThresholdOverrides:
  - begin: 2019-02-01T00:00:00+09:00
    end: 2019-03-01T00:00:00+09:00
    threshold: {resourceRequests: {cpu: "5"}}
status: {throttled: {resourceCounts: {pod: false}}}
`

func TestAThrottleBecomesAStartPolicy(t *testing.T) {
	t.Parallel()
	c := converted(t, throttle)
	require.NoError(t, c.Err)
	text, err := yaml.Marshal(c.Content)
	require.NoError(t, err)
	assert.YAMLEq(t, `
apiVersion: pod-pacemaker.io/v1alpha1
kind: StartPolicy
metadata: {name: team-t1}
spec:
  selector:
    terms:
    - podSelector: {matchLabels: {throttle: t1}}
      namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: team}}
  limits: {running: {pods: 3, requests: {cpu: 200m, memory: 1Gi, nvidia.com/gpu: "2"}}}
  temporaryOverrides:
  - {begin: "2019-02-01T00:00:00+09:00", end: "2019-03-01T00:00:00+09:00", limits: {running: {requests: {cpu: "5"}}}}
`, string(text))
	assert.Equal(t, "team-t1", c.Policy.Name)
	notes := strings.Join(c.Notes, "\n")
	assert.Contains(t, notes, "spec.throttlerName: left out")
	assert.Contains(t, notes, "counts the pods of each node, not those of the cluster")
}

func TestAClusterThrottleKeepsItsNamespaceSelector(t *testing.T) {
	t.Parallel()
	c := converted(t, `
apiVersion: schedule.k8s.everpeace.github.com/v1alpha1
kind: ClusterThrottle
metadata: {name: t1}
spec:
  more: 1
  selector: {selectorTerms: [{namespaceSelector: {matchLabels: {team: a}}}, {podSelector: {matchLabels: {b: c}}}]}
  threshold: {resourceCounts: {pod: 3}}
`)
	require.NoError(t, c.Err)
	require.Len(t, c.Policy.Spec.Selector.Terms, 2)
	assert.EqualValues(t, "a", c.Policy.Spec.Selector.Terms[0].NamespaceSelector.MatchLabels["team"])
	assert.Nil(t, c.Policy.Spec.Selector.Terms[1].NamespaceSelector)
	assert.Contains(t, c.Notes, "spec.more: left out: it means nothing here")
}

func TestAConfigOfPodPacemakerKeepsItsFields(t *testing.T) {
	t.Parallel()
	c := converted(t, `
apiVersion: woehrl.net/v1alpha
kind: PacemakerConfig
metadata: {name: big}
spec:
  nodeSelector: {size: big}
  priority: 3
  throttleConfig:
    maxConcurrent: {perCore: "0.5"}
    rateLimit: {fillFactor: 1s, burst: 5}
    loadAvg: {maxLoad: "10", incrementBy: "1"}
`)
	require.NoError(t, c.Err)
	assert.EqualValues(t, 3, c.Config.Spec.Priority)
	assert.Equal(t, "0.5", c.Config.Spec.ThrottleConfig.MaxConcurrent.PerCore.StrVal)
	assert.Contains(t, strings.Join(c.Notes, "\n"), "loadAvg.incrementBy: fades over a minute")
}

func TestWhatCannotBeTranslatedIsAnError(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{apiVersion: v1, kind: Pod, metadata: {name: p}}":                                                                                     "v1 Pod: neither a PacemakerConfig of PodPacemaker nor a Throttle",
		"{apiVersion: pod-pacemaker.io/v1alpha1, kind: PacemakerConfig, metadata: {name: p}}":                                                  "neither a PacemakerConfig of PodPacemaker",
		"{apiVersion: woehrl.net/v1alpha, kind: PacemakerConfig, metadata: {name: p}, spec: {throttleConfig: {rateLimit: {fillFactor: 5us}}}}": "fillFactor",
		"{apiVersion: woehrl.net/v1alpha, kind: PacemakerConfig, metadata: {name: p}, spec: {other: 1}}":                                       "spec.other",
		"{apiVersion: schedule.k8s.everpeace.github.com/v1alpha1, kind: Throttle, metadata: {name: p}}":                                        "spec.selector.terms",
		"{apiVersion: schedule.k8s.everpeace.github.com/v1alpha1, kind: Throttle, metadata: {name: p}, spec: [1]}":                             "spec.selector.terms",
		"a: b: c": "not YAML",
	} {
		require.ErrorContains(t, converted(t, text).Err, want, text)
	}
	assert.Empty(t, Convert(nil))
}
