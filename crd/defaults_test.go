package crd

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// specSchema returns the schema of spec in the shipped definition.
func specSchema(t *testing.T) map[string]any {
	t.Helper()
	data, err := os.ReadFile("../deploy/crds/pod-pacemaker.io_pacemakerconfigs.yaml")
	require.NoError(t, err)
	var definition map[string]any
	require.NoError(t, yaml.Unmarshal(data, &definition))
	versions, _, err := unstructured.NestedSlice(definition, "spec", "versions")
	require.NoError(t, err)
	require.Len(t, versions, 1)
	version, ok := versions[0].(map[string]any)
	require.True(t, ok)
	spec, found, err := unstructured.NestedMap(version, "schema", "openAPIV3Schema", "properties", "spec")
	require.NoError(t, err)
	require.True(t, found)
	return spec
}

// A file means the same as an object for which the API server filled in the defaults.
func TestTheDefinitionHasTheDefaultsOfTheAccessors(t *testing.T) {
	t.Parallel()
	schema := specSchema(t)
	standard := func(path ...string) any {
		value, found, err := unstructured.NestedFieldNoCopy(schema, append(path, "default")...)
		require.NoError(t, err)
		require.True(t, found, "%v has no default", path)
		return value
	}
	duration := func(path ...string) time.Duration {
		text, ok := standard(path...).(string)
		require.True(t, ok)
		return new(v1alpha1.Duration(text)).Or(-1)
	}
	var absent v1alpha1.PacemakerConfigSpec
	assert.Equal(t, absent.GetStartTimeout(), duration("properties", "startTimeout"))
	assert.Equal(t, absent.GetMaxWait(), duration("properties", "maxWait"))
	assert.Equal(t, absent.GetSettleTime(), duration("properties", "settleTime"))
	assert.EqualValues(t, absent.Priority, standard("properties", "priority"))
	assert.EqualValues(t, v1alpha1.DefaultBurst,
		standard("properties", "throttleConfig", "properties", "rateLimit", "properties", "burst"))

	assert.EqualValues(t, absent.GetMode(), standard("properties", "mode"))
	assert.Equal(t, map[string]any{}, standard("properties", "restarts"), "without it, the default inside is not filled in")
	assert.Equal(t, absent.PacesRestarts(), standard("properties", "restarts", "properties", "pace"))
	limits := []string{"properties", "throttleConfig", "properties"}
	assert.Equal(t, v1alpha1.DefaultNoProgressAfter, duration(append(limits, "noProgressAfter")...))
	assert.EqualValues(t, v1alpha1.DefaultAdaptiveMin, standard(append(limits, "adaptive", "properties", "min")...))
	assert.EqualValues(t, v1alpha1.DefaultMinUtilization,
		standard(append(limits, "pressure", "properties", "cpu", "properties", "minUtilization")...))

	exemptions := []string{"properties", "exemptions"}
	assert.Equal(t, map[string]any{}, standard(exemptions...), "without it, the defaults inside are not filled in")
	assert.Equal(t, []any{v1alpha1.DefaultExemptNamespace}, standard(append(exemptions, "properties", "namespaces")...))
	for _, kind := range []string{"daemonSets", "criticalPods"} {
		assert.Equal(t, map[string]any{}, standard(append(exemptions, "properties", kind)...))
		var names []any
		for _, name := range v1alpha1.DefaultSystemNamespaces() {
			names = append(names, name)
		}
		assert.Equal(t, names, standard(append(exemptions, "properties", kind, "properties", "namespaces")...))
	}
	assert.Equal(t, absent.Exemptions.AllowSkipAnnotation, standard(append(exemptions, "properties", "allowSkipAnnotation")...))
}

// Users of `kubectl explain` look for a field's name first. And the API server fills in the defaults of list items, too: a
// tool that compares an item with what it has applied, such as Argo CD, would find a difference for ever. What such a field
// means if it is absent is in its accessor.
func TestFieldsAreDocumentedFromTheirNamesAndItemsOfListsHaveNoDefault(t *testing.T) {
	t.Parallel()
	var check func(path string, schema map[string]any, inList bool)
	check = func(path string, schema map[string]any, inList bool) {
		if inList {
			assert.NotContains(t, schema, "default", path)
		}
		if items, ok := schema["items"].(map[string]any); ok {
			check(path+"[]", items, true)
		}
		properties, _, err := unstructured.NestedMap(schema, "properties")
		require.NoError(t, err)
		for name, property := range properties {
			field, ok := property.(map[string]any)
			require.True(t, ok)
			assert.Regexp(t, "^"+name+" ", field["description"], path+"."+name)
			check(path+"."+name, field, inList)
		}
	}
	check("spec", specSchema(t), false)
}
