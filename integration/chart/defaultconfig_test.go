package chart

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// inSchema is the schema of the value defaultConfig in values.schema.json.
var inSchema = regexp.MustCompile(`(?s)\n    "defaultConfig": (\{.*?\n    \}),\n`)

// Helm refuses a default config that is not valid, as far as a JSON schema can tell: a daemon leaves such a file out.
func TestTheSchemaOfTheDefaultConfigIsThatOfTheCRD(t *testing.T) {
	t.Parallel()
	file := filepath.Join(Dir(), "values.schema.json")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	have := inSchema.FindSubmatchIndex(text)
	require.NotNil(t, have)
	schema := jsonSchema(specOfTheCRD(t))
	schema["description"] = "The spec of a PacemakerConfig: `pod-pacemaker check` says whether it is valid."
	want, err := json.MarshalIndent(schema, "    ", "  ")
	require.NoError(t, err)
	if *update {
		text = slices.Concat(text[:have[2]], want, text[have[3]:])
		require.NoError(t, os.WriteFile(file, text, 0o644))
		have = inSchema.FindSubmatchIndex(text)
	}
	require.Equal(t, string(want), string(text[have[2]:have[3]]), "`make generate` writes it")
}

func specOfTheCRD(t *testing.T) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	content, err := os.ReadFile(Repository("deploy", "crds", "pod-pacemaker.io_pacemakerconfigs.yaml"))
	require.NoError(t, err)
	var crd apiextensionsv1.CustomResourceDefinition
	require.NoError(t, yaml.Unmarshal(content, &crd))
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
}

// pattern is what a rule of CEL requires of a string.
var pattern = regexp.MustCompile(`self\.matches\('([^']+)'\)`)

// jsonSchema translates what a JSON schema can say of a schema of Kubernetes. Unlike there, a field that is not known is a
// fault.
func jsonSchema(s apiextensionsv1.JSONSchemaProps) map[string]any {
	all := map[string]any{}
	set := func(name string, value any, is bool) {
		if is {
			all[name] = value
		}
	}
	set("type", []string{s.Type}, s.Type != "")
	set("type", []string{"integer", "string"}, s.XIntOrString)
	set("enum", s.Enum, len(s.Enum) > 0)
	set("required", s.Required, len(s.Required) > 0)
	set("minimum", s.Minimum, s.Minimum != nil)
	set("maximum", s.Maximum, s.Maximum != nil)
	set("maxLength", s.MaxLength, s.MaxLength != nil)
	set("maxItems", s.MaxItems, s.MaxItems != nil)
	for _, rule := range s.XValidations {
		if match := pattern.FindStringSubmatch(rule.Rule); match != nil && !strings.Contains(rule.Rule, "||") {
			all["pattern"] = match[1]
		}
	}
	if len(s.Properties) > 0 {
		all["additionalProperties"] = false
		properties := map[string]any{}
		for name, property := range s.Properties {
			properties[name] = jsonSchema(property)
			if name != "adaptive" { // the daemon refuses null there, which could be meant as {}
				properties[name] = orNull(jsonSchema(property))
			}
		}
		all["properties"] = properties
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		all["additionalProperties"] = jsonSchema(*s.AdditionalProperties.Schema)
	}
	if s.Items != nil && s.Items.Schema != nil {
		all["items"] = jsonSchema(*s.Items.Schema)
	}
	return all
}

// orNull lets a field be null: with that, a file of values takes back what an earlier one sets.
func orNull(schema map[string]any) map[string]any {
	if types, ok := schema["type"].([]string); ok {
		schema["type"] = append(types, "null")
	}
	if words, ok := schema["enum"].([]apiextensionsv1.JSON); ok {
		schema["enum"] = append(words, apiextensionsv1.JSON{Raw: []byte("null")})
	}
	return schema
}

func TestADefaultConfigThatIsNotValidIsRefused(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]string{
		"{throttleConfig: {maxConcurent: {value: 2}}}":              "at '/defaultConfig/throttleConfig': additional properties 'maxConcurent' not allowed",
		"{maxConcurrent: {value: 2}}":                               "at '/defaultConfig': additional properties 'maxConcurrent' not allowed",
		"{mode: enforce}":                                           "at '/defaultConfig/mode': value must be one of 'Enforce', 'Shadow', 'Disabled', <nil>",
		"{maxWait: 5}":                                              "at '/defaultConfig/maxWait': got number, want null or string",
		"{maxWait: 5 minutes}":                                      "at '/defaultConfig/maxWait': '5 minutes' does not match pattern",
		"{throttleConfig: {maxConcurrent: {value: 0}}}":             "at '/defaultConfig/throttleConfig/maxConcurrent/value': minimum: got 0, want 1",
		"{throttleConfig: {maxConcurrent: {perCore: 0.5}}}":         "at '/defaultConfig/throttleConfig/maxConcurrent/perCore': got number, want null or integer or string",
		"{throttleConfig: {cpu: {maxLoad: 80%}}}":                   "at '/defaultConfig/throttleConfig/cpu/maxLoad': '80%' does not match pattern",
		"{throttleConfig: {cpu: {}}}":                               "at '/defaultConfig/throttleConfig/cpu': missing property 'maxLoad'",
		"{exemptions: {namespaces: [1]}}":                           "at '/defaultConfig/exemptions/namespaces/0': got number, want string",
		"{throttleConfig: {adaptive: null}}":                        "at '/defaultConfig/throttleConfig/adaptive': got null, want object",
		"{startAfter: [{daemonset: kube-system/cilium}]}":           "at '/defaultConfig/startAfter/0': additional properties 'daemonset' not allowed",
		"{nodeSelector: {pool: a}, throttleConfig: {adaptive: {}}}": "defaultConfig.nodeSelector: has no effect",
	} {
		_, err := Render(Release{Name: "pod-pacemaker", Namespace: "pacing"}, vals(t, "{defaultConfig: "+spec+"}"))
		require.ErrorContains(t, err, want, spec)
	}
}

// What the daemon takes, Helm does not refuse.
func TestEachValidDefaultConfigIsAccepted(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(Repository("crd", "testdata", "valid", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		var object struct {
			Spec map[string]any `json:"spec"`
		}
		require.NoError(t, yaml.Unmarshal(content, &object), file)
		for _, refused := range []string{"nodeSelector", "instance", "priority"} {
			delete(object.Spec, refused)
		}
		_, err = Render(Release{Name: "pod-pacemaker", Namespace: "pacing"}, map[string]any{"defaultConfig": object.Spec})
		require.NoError(t, err, file)
	}
}
