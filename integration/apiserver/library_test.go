package apiserver

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/pod-pacemaker/pod-pacemaker/crd/rules"
	"github.com/pod-pacemaker/pod-pacemaker/integration/chart"
)

// library checks objects of a kind as the API server does, by its own library.
type library struct {
	structural *schema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
}

func newLibrary(t *testing.T, resource string) library {
	t.Helper()
	data, err := os.ReadFile(chart.Repository("deploy", "crds", "pod-pacemaker.io_"+resource+".yaml"))
	require.NoError(t, err)
	var definition apiextensionsv1.CustomResourceDefinition
	require.NoError(t, yaml.UnmarshalStrict(data, &definition))
	var internal apiextensions.CustomResourceDefinition
	require.NoError(t, apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&definition, &internal, nil))
	openAPI := internal.Spec.Validation.OpenAPIV3Schema
	structural, err := schema.NewStructural(openAPI)
	require.NoError(t, err)
	validator, _, err := validation.NewSchemaValidator(openAPI)
	require.NoError(t, err)
	return library{structural, validator, cel.NewValidator(structural, true, celconfig.PerCallLimit)}
}

func (l library) faults(t *testing.T, object map[string]any) field.ErrorList {
	t.Helper()
	pruning.Prune(object, l.structural, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, l.structural)
	defaulting.Default(object, l.structural)
	faults := validation.ValidateCustomResource(nil, object, l.validator)
	faults = append(faults, listtype.ValidateListSetsAndMaps(nil, l.structural, object)...)
	if len(faults) > 0 {
		return faults
	}
	faults, _ = l.rules.Validate(t.Context(), nil, l.structural, object, nil, celconfig.RuntimeCELCostBudget)
	return faults
}

// Package rules accepts and refuses the same as the API server's own library, and fills in the same defaults: for the
// files that the tests of crd have, and for objects that are made from them by exchanging some of their values.
func TestRulesAndTheLibraryAgree(t *testing.T) {
	t.Parallel()
	for resource, c := range map[string]struct {
		check   rules.Check
		folders []string
	}{
		"pacemakerconfigs": {rules.Config, []string{"valid", "invalid"}},
		"startpolicies":    {rules.Policy, []string{"startpolicy/valid", "startpolicy/invalid"}},
	} {
		t.Run(resource, func(t *testing.T) {
			t.Parallel()
			l := newLibrary(t, resource)
			var objects []any
			values := map[string][]any{}
			for _, folder := range c.folders {
				files, err := filepath.Glob(chart.Repository("crd", "testdata", folder, "*.yaml"))
				require.NoError(t, err)
				for _, file := range files {
					object := objectIn(t, file)
					objects = append(objects, object)
					collect(values, "", object)
				}
			}
			random := rand.New(rand.NewPCG(1, 2))
			accepted := 0
			for i := range 6 * len(objects) {
				object, _ := runtime.DeepCopyJSONValue(objects[i%len(objects)]).(map[string]any)
				for range i / len(objects) {
					exchange(random, object, values)
				}
				if !agree(t, l, c.check, object) {
					return
				}
				if _, faults := c.check(object); len(faults) == 0 {
					accepted++
				}
			}
			t.Logf("%d of %d objects are valid", accepted, 6*len(objects))
			assert.Greater(t, accepted, 50)
		})
	}
}

func agree(t *testing.T, l library, check rules.Check, object map[string]any) bool {
	t.Helper()
	given, err := json.Marshal(object)
	require.NoError(t, err)
	filled := runtime.DeepCopyJSON(object)
	_, ours := check(object)
	theirs := l.faults(t, filled)
	if !assert.Equal(t, len(theirs) == 0, len(ours) == 0, "%s\nthe library: %v\npackage rules: %v", given, theirs, ours) {
		return false
	}
	return len(ours) > 0 || assert.Equal(t, filled, object, "%s", given)
}

func objectIn(t *testing.T, file string) (object map[string]any) {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	data, err = yaml.YAMLToJSON(data)
	require.NoError(t, err)
	require.NoError(t, utiljson.Unmarshal(data, &object))
	return object
}

// collect notes each value in a value by the name of its field.
func collect(values map[string][]any, name string, value any) {
	values[name] = append(values[name], value)
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			collect(values, key, v[key])
		}
	case []any:
		for _, item := range v {
			collect(values, name+"[]", item)
		}
	}
}

// exchange replaces a value somewhere in the spec of an object by one that the same field has elsewhere, or by that of
// another field, or removes it.
func exchange(random *rand.Rand, object map[string]any, values map[string][]any) {
	names := slices.Sorted(maps.Keys(values))
	other := func(name string) any {
		of := values[name]
		if random.IntN(10) == 0 || len(of) == 0 {
			of = values[names[random.IntN(len(names))]]
		}
		return runtime.DeepCopyJSONValue(of[random.IntN(len(of))])
	}
	name, at := "spec", object["spec"]
	for {
		switch v := at.(type) {
		case map[string]any:
			if len(v) == 0 {
				return
			}
			keys := slices.Sorted(maps.Keys(v))
			name = keys[random.IntN(len(keys))]
			switch random.IntN(6) {
			case 0:
				delete(v, name)
				return
			case 1, 2:
				v[name] = other(name)
				return
			}
			at = v[name]
		case []any:
			if len(v) == 0 {
				return
			}
			name += "[]"
			i := random.IntN(len(v))
			if random.IntN(3) == 0 {
				v[i] = other(name)
				return
			}
			at = v[i]
		default:
			return
		}
	}
}
