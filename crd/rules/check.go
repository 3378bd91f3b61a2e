package rules

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Check returns an error for each field of an object that is wrong, with its path and what is expected there. It returns
// apart the fields that the kind of the object does not have, and removes them. Null is an absent field. Where there are no
// faults, absent fields have their defaults afterwards, as in the API server. The values in the object are those of
// JSON, and whole numbers are int64. A Check is safe for concurrent use.
type Check func(object map[string]any) (unknown, faults field.ErrorList)

// Config checks a PacemakerConfig.
func Config(object map[string]any) (unknown, faults field.ErrorList) {
	return checkBy(configSchema, object)
}

// Policy checks a StartPolicy.
func Policy(object map[string]any) (unknown, faults field.ErrorList) {
	return checkBy(policySchema, object)
}

func checkBy(schemaOf func() (*schema, error), object map[string]any) (unknown, faults field.ErrorList) {
	s, err := schemaOf()
	if err != nil {
		return nil, field.ErrorList{field.InternalError(nil, err)}
	}
	var c check
	c.value(nil, object, s)
	metadata, _ := object["metadata"].(map[string]any)
	switch name, path := metadata["name"], field.NewPath("metadata", "name"); name := name.(type) {
	case nil:
		c.add(field.Required(path, `must be the name of this object, like "default"`))
	case string:
		for _, want := range validation.IsDNS1123Subdomain(name) {
			c.add(field.Invalid(path, name, want))
		}
	}
	return c.unknown, c.faults
}

// check collects what is wrong with an object.
type check struct{ unknown, faults field.ErrorList }

func (c *check) add(fault *field.Error) { c.faults = append(c.faults, fault) }

// value checks a value. The rules on an object or a list are checked if all is right inside.
func (c *check) value(path *field.Path, v any, s *schema) {
	before := len(c.faults)
	object, isObject := v.(map[string]any)
	list, isList := v.([]any)
	switch {
	case isObject && s.AdditionalProperties != nil:
		c.mapping(path, object, s)
	case isObject && s.Properties != nil:
		c.object(path, object, s)
	case isObject && s.Type == "object": // of any content
	case isList && s.Type == "array":
		c.list(path, list, s)
	case s.takes(v):
		if c.rules(path, v, s); len(c.faults) == before { // they say best what is expected
			c.scalar(path, v, s)
		}
		return
	default:
		c.wrongType(path, v, s)
	}
	if len(c.faults) == before {
		c.rules(path, v, s)
	}
}

func (c *check) mapping(path *field.Path, object map[string]any, s *schema) {
	if c.count(path, len(object), s.MinProperties, s.MaxProperties, s) {
		for _, key := range sortedKeys(object) {
			c.item(path.Key(key), object[key], s.AdditionalProperties)
		}
	}
}

// object checks the fields of an object, and fills in the defaults of those that are absent.
func (c *check) object(path *field.Path, object map[string]any, s *schema) {
	for _, name := range sortedKeys(object) {
		known := s.Properties[name] != nil
		if !known && object[name] != nil {
			c.unknown = append(c.unknown, field.Forbidden(path.Child(name), "unknown field, must be one of: "+strings.Join(sortedKeys(s.Properties), ", ")))
		}
		if !known || object[name] == nil {
			delete(object, name)
		}
	}
	for _, name := range sortedKeys(s.Properties) {
		of := s.Properties[name]
		if _, set := object[name]; !set && of.Default.value != nil {
			object[name] = runtime.DeepCopyJSONValue(of.Default.value)
		}
		switch v, set := object[name]; {
		case set:
			c.value(path.Child(name), v, of)
		case slices.Contains(s.Required, name):
			c.absent(path.Child(name), of)
		}
	}
	if s.MinProperties != nil && len(object) < *s.MinProperties {
		c.add(field.Required(path, "must set "+oneOf(sortedKeys(s.Properties))))
	}
}

// absent reports a required field that is absent, or rather the required fields in it.
func (c *check) absent(path *field.Path, s *schema) {
	before := len(c.faults)
	if s.Type == "object" {
		c.object(path, map[string]any{}, s)
	}
	if len(c.faults) == before {
		c.add(field.Required(path, s.wanted(nil)))
	}
}

func (c *check) list(path *field.Path, list []any, s *schema) {
	if !c.count(path, len(list), s.MinItems, s.MaxItems, s) {
		return
	}
	for i, item := range list {
		c.item(path.Index(i), item, s.Items)
		if text, ok := item.(string); ok && s.ListType == "set" && slices.Contains(list[:i], item) {
			c.add(field.Duplicate(path.Index(i), text))
		}
	}
}

// count checks the number of items, and reports whether it is accepted.
func (c *check) count(path *field.Path, n int, least, most *int, s *schema) bool {
	switch {
	case most != nil && n > *most:
		c.add(field.TooMany(path, n, *most))
	case least != nil && n < *least:
		c.add(field.Required(path, fmt.Sprintf("must have at least %d entry%s", *least, s.like())))
	default:
		return true
	}
	return false
}

// item checks a value in a list or a mapping, which must not be null.
func (c *check) item(path *field.Path, v any, s *schema) {
	if v == nil {
		c.add(field.Invalid(path, v, "must not be null"))
		return
	}
	c.value(path, v, s)
}

func (c *check) wrongType(path *field.Path, v any, s *schema) {
	want := s.wanted(v)
	if name := path.String(); strings.HasSuffix(name, "nodeSelector[matchLabels]") || strings.HasSuffix(name, "nodeSelector[matchExpressions]") {
		want = "must be a string: the labels stand directly in nodeSelector, like {pool: a}"
	}
	c.add(field.Invalid(path, v, want))
}

// takes reports whether a value that is neither an object nor a list is of the type that the schema has.
func (s *schema) takes(v any) bool {
	switch v := v.(type) {
	case string:
		_, err := time.Parse(time.RFC3339, v)
		return s.IntOrString || s.Type == "string" && (s.Format != "date-time" || err == nil)
	case int64:
		return s.IntOrString || s.Type == "integer" && (s.Format != "int32" || v == int64(int32(v)))
	case bool:
		return s.Type == "boolean"
	}
	return false
}

// scalar checks a value of the right type that is neither an object nor a list.
func (c *check) scalar(path *field.Path, v any, s *schema) {
	switch v := v.(type) {
	case int64:
		if s.Minimum != nil && v < *s.Minimum || s.Maximum != nil && v > *s.Maximum {
			c.add(field.Invalid(path, v, s.wanted(v)))
		}
	case string:
		length := utf8.RuneCountInString(v)
		switch {
		case s.Pattern != "" && !matches(s.Pattern, v):
			c.add(field.Invalid(path, v, s.wanted(v)))
		case s.MinLength != nil && length < *s.MinLength:
			c.add(field.Required(path, "must not be empty"))
		case s.MaxLength != nil && length > *s.MaxLength:
			c.add(field.TooLongCharacters(path, v, *s.MaxLength))
		case s.Enum != nil && !slices.Contains(s.Enum, v):
			c.add(field.NotSupported(path, v, s.Enum))
		}
	}
}

// rules checks the rules of a value.
func (c *check) rules(path *field.Path, v any, s *schema) {
	for _, r := range s.Rules {
		in := scope{variables: map[string]any{"self": v, "int": kind("int"), "string": kind("string")}}
		if in.value(r.Rule) == true {
			continue
		}
		at, value, want := path, v, r.Message
		if name := strings.TrimPrefix(r.FieldPath, "."); name != "" {
			object, _ := v.(map[string]any)
			at, value = path.Child(name), object[name]
		}
		if in.wrong != nil {
			value = in.wrong
		}
		if r.MessageExpression.call != "" {
			want = text(in.value(r.MessageExpression))
		}
		switch r.Reason {
		case "FieldValueRequired":
			c.add(field.Required(at, want))
		case "FieldValueForbidden":
			c.add(field.Forbidden(at, want))
		default:
			c.add(field.Invalid(at, value, want))
		}
	}
}

// wanted says what the schema expects instead of v, which is nil if there is no value.
func (s *schema) wanted(v any) string {
	_, isString := v.(string)
	_, isBool := v.(bool)
	_, isFloat := v.(float64)
	rule := ""
	if len(s.Rules) > 0 {
		rule = s.Rules[0].Message
	}
	switch {
	case rule != "" && (v == nil || s.IntOrString && !isFloat || s.Type == "string" && isString):
		return rule
	case rule != "" && s.IntOrString:
		return rule + "; in quotes if it is not whole"
	case rule != "" && s.Type == "string" && !isBool:
		return rule + "; in quotes if it looks like something else"
	case s.Format == "date-time":
		return `must be a moment as in RFC 3339, like "2026-11-27T00:00:00+01:00"`
	case s.Type == "string" && isString:
		return "must match " + s.Pattern
	case s.Type == "string" && isBool:
		return `must be a string in quotes, like "true": without them, YAML reads On, Off, Yes and No as true or false`
	case s.Type == "string":
		return "must be a string, in quotes if it looks like something else"
	case s.Type == "boolean":
		return "must be true or false"
	case s.Type == "integer" && s.Minimum != nil && s.Maximum != nil:
		return fmt.Sprintf("must be a whole number from %d to %d", *s.Minimum, *s.Maximum)
	case s.Type == "integer":
		return "must be a whole number"
	case s.Type == "array":
		return "must be a list"
	}
	return "must be a mapping" + s.like()
}

// like returns the example of the schema, as in ", like {value: 2}", or nothing.
func (s *schema) like() string {
	if s.Example.value == nil {
		return ""
	}
	example, _ := json.Marshal(s.Example.value) // what was decoded can be encoded
	return ", like " + strings.NewReplacer(`"`, "", ":", ": ", ",", ", ").Replace(string(example))
}

// oneOf joins names as in "a, b or c".
func oneOf(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
