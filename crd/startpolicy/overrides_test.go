package startpolicy

import (
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

func TestAnOverrideMayHaveNoBeginOrNoEnd(t *testing.T) {
	t.Parallel()
	p := compile(t, `
selector: {terms: [{podSelector: {}}]}
limits: {starting: {pods: 1}, running: {pods: 1}}
temporaryOverrides:
  - {end: "2026-11-27T00:00:00Z", limits: {starting: {pods: 2}}}
  - {begin: "2026-11-28T00:00:00Z", limits: {starting: {pods: 3}}}
  - {limits: {running: {pods: 4}}}
`)
	end, begin := at(t, "2026-11-27T00:00:00Z"), at(t, "2026-11-28T00:00:00Z")
	over := end.Add(time.Nanosecond)
	for _, c := range []struct {
		name        string
		now         time.Time
		starting    int32
		since, next time.Time
	}{
		{"long before", at(t, "1970-01-01T00:00:00Z"), 2, time.Time{}, over},
		{"at the end of the first", end, 2, time.Time{}, over},
		{"between", over, 1, over, begin},
		{"at the begin of the second", begin, 3, begin, time.Time{}},
		{"long after", at(t, "9999-12-31T23:59:59Z"), 3, begin, time.Time{}},
	} {
		got := p.LimitsAt(c.now)
		assert.Equal(t, c.starting, *got.Limits.Starting.Pods, c.name)
		assert.EqualValues(t, 4, *got.Limits.Running.Pods, c.name)
		assert.True(t, c.since.Equal(got.Since), "%s: %s", c.name, got.Since)
		assert.True(t, c.next.Equal(got.Next), "%s: %s", c.name, got.Next)
	}
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
