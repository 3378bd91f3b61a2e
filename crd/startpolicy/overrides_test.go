package startpolicy

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// The example of kube-throttler's documentation.
const throttler = `
selector: {terms: [{podSelector: {matchLabels: {throttle: t1}}}]}
limits: {running: {pods: 3, requests: {cpu: 200m, memory: 1Gi, nvidia.com/gpu: "2"}}}
temporaryOverrides:
  - {begin: "2019-02-01T00:00:00+09:00", end: "2019-03-01T00:00:00+09:00", limits: {running: {requests: {cpu: "5"}}}}
  - {begin: "2019-02-15T00:00:00+09:00", end: "2019-03-01T00:00:00+09:00", limits: {running: {requests: {cpu: "1", memory: 8Gi}}, starting: {pods: 4}}}
`

func at(t *testing.T, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339Nano, text)
	require.NoError(t, err)
	return moment
}

func TestOverridesAreMergedAndTheFirstWins(t *testing.T) {
	t.Parallel()
	p := compile(t, throttler)
	amounts := func(cpu, memory string) map[string]v1alpha1.Quantity {
		return map[string]v1alpha1.Quantity{
			"cpu": v1alpha1.Quantity(cpu), "memory": v1alpha1.Quantity(memory), "nvidia.com/gpu": "2",
		}
	}
	first, second, end := at(t, "2019-02-01T00:00:00+09:00"), at(t, "2019-02-15T00:00:00+09:00"), at(t, "2019-03-01T00:00:00+09:00")
	over := end.Add(time.Nanosecond)
	for _, c := range []struct {
		name        string
		now         time.Time
		requests    map[string]v1alpha1.Quantity
		starting    bool
		since, next time.Time
	}{
		{"before", first.Add(-time.Nanosecond), amounts("200m", "1Gi"), false, time.Time{}, first},
		{"at the start", first, amounts("5", "1Gi"), false, first, second},
		{"both", at(t, "2019-02-16T00:00:00+09:00"), amounts("5", "8Gi"), true, second, over},
		{"at the end", end, amounts("5", "8Gi"), true, second, over},
		{"after", over, amounts("200m", "1Gi"), false, over, time.Time{}},
	} {
		got := p.LimitsAt(c.now)
		assert.Equal(t, c.requests, got.Limits.Running.Requests, c.name)
		assert.EqualValues(t, 3, *got.Limits.Running.Pods, c.name)
		assert.Equal(t, c.starting, got.Limits.Starting != nil, c.name)
		assert.True(t, c.since.Equal(got.Since), "%s: %s", c.name, got.Since)
		assert.True(t, c.next.Equal(got.Next), "%s: %s", c.name, got.Next)
	}
	assert.Equal(t, amounts("200m", "1Gi"), p.limits.Running.Requests, "the policy's own limits do not change")
}

func TestAnOverrideWithoutMomentsIsLeftOutAndReported(t *testing.T) {
	t.Parallel()
	p := compile(t, `
selector: {terms: [{podSelector: {}}]}
limits: {starting: {pods: 1}}
temporaryOverrides:
  - {begin: tomorrow, end: "2026-11-28", limits: {starting: {pods: 2}}}
  - {begin: "2026-11-27T00:00:00Z", end: never, limits: {starting: {pods: 3}}}
  - {begin: "2026-11-27T00:00:00Z", end: "2026-11-28T00:00:00Z", limits: {starting: {pods: 4}}}
`)
	assert.EqualValues(t, 4, *p.LimitsAt(at(t, "2026-11-27T12:00:00Z")).Limits.Starting.Pods)
	assert.EqualValues(t, 1, *p.LimitsAt(at(t, "2026-11-26T12:00:00Z")).Limits.Starting.Pods)
	var paths []string
	for _, fault := range p.Invalid() {
		path, why, _ := strings.Cut(fault, ": ")
		paths = append(paths, path)
		assert.NotEmpty(t, why)
	}
	assert.Equal(t, []string{
		"spec.temporaryOverrides[0].begin", "spec.temporaryOverrides[0].end", "spec.temporaryOverrides[1].end",
	}, paths)
}

func TestAPacerIsOverriddenAsAWhole(t *testing.T) {
	t.Parallel()
	p := compile(t, `
selector: {terms: [{podSelector: {}}]}
limits: {pacer: {linear: {step: 1, maxStagger: 5}}}
temporaryOverrides:
  - {begin: "2026-11-27T00:00:00Z", end: "2026-11-28T00:00:00Z", limits: {pacer: {exponential: {minInitial: 4, multiplier: 4, maxStagger: 16}}}}
`)
	got := p.LimitsAt(at(t, "2026-11-27T12:00:00Z")).Limits.Pacer
	assert.Nil(t, got.Linear)
	assert.EqualValues(t, 4, got.Exponential.MinInitial)
}
