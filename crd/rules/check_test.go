package rules

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// with returns a valid object of a kind with one more value.
func with(t *testing.T, value any, path ...string) map[string]any {
	t.Helper()
	object := map[string]any{
		"metadata": map[string]any{"name": "a"},
		"spec": map[string]any{
			"selector": map[string]any{"terms": []any{map[string]any{"podSelector": map[string]any{}}}},
			"limits":   map[string]any{"starting": map[string]any{"pods": int64(1)}},
		},
	}
	if path[1] != "temporaryOverrides" && path[1] != "limits" {
		object["spec"] = map[string]any{}
	}
	require.NoError(t, unstructured.SetNestedField(object, value, path...))
	return object
}

// The rules of the forms of values. Package apiserver of integration tests some of them on a real API server.
func TestFormsOfValues(t *testing.T) {
	t.Parallel()
	begin := func(at any) any {
		return []any{map[string]any{"begin": at, "limits": map[string]any{"starting": map[string]any{"pods": int64(1)}}}}
	}
	for _, c := range []struct {
		check      Check
		path       []string
		of         func(any) any
		good, bad  []any
		badIsAtEnd string
	}{
		{
			Config, []string{"spec", "maxWait"}, nil,
			[]any{"1s", "90s", "1h2m3s4ms", "24h", "1s1s1s1s", "00001s"},
			[]any{"", "1", "1d", "1.5s", "-1s", "+1s", "1us", " 1s", "1s\n", "100000s", "1s1s1s1s1s", "∞", "999ms", "24h1ms", int64(1), 1.5, true, []any{}, map[string]any{}},
			"",
		},
		{
			Config, []string{"spec", "throttleConfig", "loadAvg"}, func(v any) any { return map[string]any{"maxLoad": v} },
			[]any{int64(80), "80", "0.5", "62.125", "100000", int64(100000), "0.001", "000001"},
			[]any{"", ".", ".5", "5.", "-1", int64(-1), "+1", "1e2", "NaN", "Inf", "0x10", "1_0", " 1", "1\n", "1.0000", "1000000", "80%", int64(0), "0", "100000.001", 1.5, true, []any{}},
			".maxLoad",
		},
		{
			Policy, []string{"spec", "limits", "starting", "requests"}, func(v any) any { return map[string]any{"cpu": v} },
			[]any{int64(0), int64(2), "2", "200m", "1.5Gi", "64M", "999Ti", "0.001k", int64(999999999999999)},
			[]any{"", "-1", int64(-1), "1e9", "1GB", "1000Ti", "1.5m", "1.0001", " 1", "Gi", int64(1000000000000000), 1.5, true},
			"[cpu]",
		},
		{
			Policy, []string{"spec", "temporaryOverrides"}, begin,
			[]any{"2026-11-27T00:00:00Z", "2026-11-27T00:00:00.5+01:00", "2028-02-29T23:59:59-23:59"},
			[]any{"", "tomorrow", "2026-11-27", "2026-11-27T00:00:00", "2026-11-27T0:00:00Z", "2026-02-29T00:00:00Z", "2026-11-31T00:00:00Z", "2026-11-27T24:00:00Z", int64(1)},
			"[0].begin",
		},
	} {
		of := c.of
		if of == nil {
			of = func(v any) any { return v }
		}
		at := c.path[0] + "." + c.path[1]
		for _, name := range c.path[2:] {
			at += "." + name
		}
		for _, v := range c.good {
			_, faults := c.check(with(t, of(v), c.path...))
			assert.Empty(t, faults, "%s: %v", at, v)
		}
		for _, v := range c.bad {
			_, faults := c.check(with(t, of(v), c.path...))
			if assert.Len(t, faults, 1, "%s: %v", at, v) {
				assert.Equal(t, at+c.badIsAtEnd, faults[0].Field)
			}
		}
	}
}

func TestAbsentFieldsHaveTheirDefaults(t *testing.T) {
	t.Parallel()
	object := with(t, nil, "spec", "restarts")
	unknown, faults := Config(object)
	require.Empty(t, unknown)
	require.Empty(t, faults)
	spec, _ := object["spec"].(map[string]any)
	assert.Equal(t, "5m", spec["startTimeout"])
	assert.Equal(t, map[string]any{"pace": true}, spec["restarts"])
	assert.Equal(t, int64(0), spec["priority"])
	system := []any{"kube-*", "*-system", "pod-pacemaker"}
	assert.Equal(t, map[string]any{
		"namespaces": []any{"kube-system"}, "allowSkipAnnotation": false,
		"daemonSets": map[string]any{"namespaces": system}, "criticalPods": map[string]any{"namespaces": system},
	}, spec["exemptions"])
	assert.NotContains(t, spec, "instance", "it has no default")

	// An object has its own copy of them.
	exemptions, _ := spec["exemptions"].(map[string]any)
	exemptions["namespaces"].([]any)[0] = "other" //nolint:errcheck // asserted above
	again := with(t, "5s", "spec", "settleTime")
	_, faults = Config(again)
	require.Empty(t, faults)
	namespaces, _, _ := unstructured.NestedSlice(again, "spec", "exemptions", "namespaces")
	assert.Equal(t, []any{"kube-system"}, namespaces)
}

// Where a required object is absent, what is absent in it is named, and nothing is made up.
func TestRequiredFieldsAreNamed(t *testing.T) {
	t.Parallel()
	object := map[string]any{"metadata": map[string]any{"name": "a"}}
	_, faults := Policy(object)
	var found []string
	for _, f := range faults {
		assert.Equal(t, field.ErrorTypeRequired, f.Type)
		found = append(found, f.Field+": "+f.Detail)
	}
	assert.Equal(t, []string{
		"spec.limits: must set pacer, running or starting",
		"spec.selector.terms: must have at least one term, like {podSelector: {}} for every pod",
	}, found)
	assert.NotContains(t, object, "spec")
}

// Rules about several fields say nothing while a field alone is wrong.
func TestAWrongFieldIsReportedOnce(t *testing.T) {
	t.Parallel()
	object := with(t, "-1s", "spec", "startTimeout")
	require.NoError(t, unstructured.SetNestedField(object, "10s", "spec", "settleTime"))
	_, faults := Config(object)
	require.Len(t, faults, 1)
	assert.Equal(t, "spec.startTimeout", faults[0].Field)
}

// The metadata is not in the definitions.
func TestMetadataIsChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		value any
		want  string
	}{
		{"labels", map[string]any{"a": true}, "metadata.labels[a]: Invalid value: true"},
		{"generation", "1", "metadata.generation: Invalid value: \"1\": must be a whole number"},
		{"finalizers", "a", "metadata.finalizers: Invalid value: \"a\": must be a list"},
		{"ownerReferences", []any{map[string]any{"controller": "yes"}}, "metadata.ownerReferences[0].controller: Invalid value: \"yes\": must be true or false"},
		{"deletionTimestamp", "now", "metadata.deletionTimestamp: Invalid value: \"now\": must be a moment"},
	} {
		_, faults := Config(with(t, c.value, "metadata", c.name))
		require.Len(t, faults, 1, c.name)
		assert.Contains(t, faults[0].Error(), c.want)
	}
	for name, value := range map[string]any{
		"creationTimestamp": "2026-11-27T00:00:00Z", "labels": map[string]any{"a": "b"}, "generation": int64(7),
		"managedFields": []any{map[string]any{"manager": "kubectl", "time": "2026-11-27T00:00:00Z", "fieldsV1": map[string]any{"f:spec": map[string]any{}}}},
	} {
		unknown, faults := Config(with(t, value, "metadata", name))
		assert.Empty(t, unknown, name)
		assert.Empty(t, faults, name)
	}
	unknown, _ := Config(with(t, "b", "metadata", "nom"))
	require.Len(t, unknown, 1)
	assert.Contains(t, unknown[0].Error(), "metadata.nom: Forbidden: unknown field, must be one of: annotations,")
}

// What a kind does not have is not in force: it sets no limit.
func TestUnknownFieldsDoNotCount(t *testing.T) {
	t.Parallel()
	object := with(t, map[string]any{"waiting": map[string]any{"pods": int64(1)}}, "spec", "limits")
	unknown, faults := Policy(object)
	require.Len(t, unknown, 1)
	assert.Equal(t, "spec.limits.waiting", unknown[0].Field)
	require.Len(t, faults, 1)
	assert.Equal(t, `spec.limits: Required value: must set pacer, running or starting`, faults[0].Error())
}

// A number that the Go type cannot hold is a fault of the field.
func TestNumbersHave32Bits(t *testing.T) {
	t.Parallel()
	_, faults := Config(with(t, int64(1)<<32, "status", "nodes"))
	require.Len(t, faults, 1)
	assert.Equal(t, "status.nodes", faults[0].Field)
}
