package rules

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the schemas anew, from the definitions")

// The schemas are those that the API server gets.
func TestTheSchemasAreThoseOfTheDefinitions(t *testing.T) {
	t.Parallel()
	for _, resource := range []string{"pacemakerconfigs", "startpolicies"} {
		data, err := os.ReadFile("../../deploy/crds/pod-pacemaker.io_" + resource + ".yaml")
		require.NoError(t, err)
		var definition struct {
			Spec struct {
				Versions []struct {
					Schema struct{ OpenAPIV3Schema map[string]any }
				}
			}
		}
		require.NoError(t, yaml.Unmarshal(data, &definition))
		require.Len(t, definition.Spec.Versions, 1)
		schema := withoutDescriptions(definition.Spec.Versions[0].Schema.OpenAPIV3Schema)
		properties, _ := schema["properties"].(map[string]any)
		properties["metadata"] = schemaOf(reflect.TypeFor[metav1.ObjectMeta]())
		want, err := json.MarshalIndent(schema, "", " ")
		require.NoError(t, err)
		file := resource + ".json"
		if *update {
			require.NoError(t, os.WriteFile(file, append(want, '\n'), 0o600))
		}
		found, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, string(want)+"\n", string(found), "`go generate ./crd` writes %s anew", file)
	}
}

// schemaOf returns the schema of a Go type.
func schemaOf(t reflect.Type) map[string]any {
	switch {
	case t.Kind() == reflect.Pointer:
		return schemaOf(t.Elem())
	case t == reflect.TypeFor[metav1.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[metav1.FieldsV1]():
		return map[string]any{"type": "object"}
	}
	switch t.Kind() {
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Struct:
		properties := map[string]any{}
		for f := range t.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			properties[name] = schemaOf(f.Type)
		}
		return map[string]any{"type": "object", "properties": properties}
	}
	return map[string]any{"type": map[reflect.Kind]string{reflect.String: "string", reflect.Bool: "boolean", reflect.Int64: "integer"}[t.Kind()]}
}

// A part of a schema that the daemon does not know would be a rule that only the API server has.
func TestNothingInTheSchemasIsUnknown(t *testing.T) {
	t.Parallel()
	for _, data := range [][]byte{configJSON, policyJSON} {
		var known *schema
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.DisallowUnknownFields()
		require.NoError(t, decoder.Decode(&known))
	}
}

// withoutDescriptions returns a schema without its descriptions, and without what is of no use: that a number or a string
// may be either, and the keys of lists in the status. A property may have one of these names.
func withoutDescriptions(schema map[string]any) map[string]any {
	for _, name := range []string{"description", "anyOf", "x-kubernetes-list-map-keys"} {
		delete(schema, name)
	}
	properties, _ := schema["properties"].(map[string]any)
	parts := []any{schema["items"], schema["additionalProperties"]}
	for _, of := range properties {
		parts = append(parts, of)
	}
	for _, of := range parts {
		if part, ok := of.(map[string]any); ok {
			withoutDescriptions(part)
		}
	}
	return schema
}
