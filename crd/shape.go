package crd

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// shape collects where a document differs in form from a Go type. The decoders of JSON, also the strict one of
// sigs.k8s.io/json, and of unstructured objects stop at the first difference, give no path below a list or a mapping, and do
// not say what was expected. The API server's own validation of schemas and CEL rules, as a library, would need 21 MiB more
// than the 26 MiB of an idle daemon, and says of a 2 that it "must be of type object".
type shape struct {
	unknown field.ErrorList // fields that the type does not have
	wrong   field.ErrorList // values that do not fit the field's type
}

// check compares v, as documents returns it, with t. Null is an absent field.
func (s *shape) check(path *field.Path, v any, t reflect.Type) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	object, isObject := v.(map[string]any)
	list, isList := v.([]any)
	own, kind := reflect.PointerTo(t).Implements(unmarshaler), t.Kind()
	switch {
	case !own && kind == reflect.Struct && isObject:
		s.checkFields(path, object, jsonFields(t))
		s.checkRequired(path, object, t)
	case kind == reflect.Map && isObject:
		for _, key := range sortedKeys(object) {
			s.checkItem(path.Child(key), object[key], t.Elem())
		}
	case kind == reflect.Slice && isList:
		for i, item := range list {
			s.checkItem(path.Index(i), item, t.Elem())
		}
	default:
		s.decode(path, v, t)
	}
}

func (s *shape) checkFields(path *field.Path, object map[string]any, known map[string]reflect.Type) {
	for _, name := range sortedKeys(object) {
		if fieldType, ok := known[name]; ok {
			s.check(path.Child(name), object[name], fieldType)
			continue
		}
		names := strings.Join(sortedKeys(known), ", ")
		s.unknown = append(s.unknown, field.Forbidden(path.Child(name), "unknown field, must be one of: "+names))
	}
}

// checkRequired checks that a pacer has all its fields: in the Go type, an absent one is 0.
func (s *shape) checkRequired(path *field.Path, object map[string]any, t reflect.Type) {
	if t != reflect.TypeFor[v1alpha1.ExponentialPacer]() && t != reflect.TypeFor[v1alpha1.LinearPacer]() {
		return
	}
	known := jsonFields(t)
	for _, name := range sortedKeys(known) {
		if object[name] == nil {
			s.wrong = append(s.wrong, field.Required(path.Child(name), expected(nil, known[name], nil)))
		}
	}
}

// checkItem checks a value in a list or a mapping, which must not be null.
func (s *shape) checkItem(path *field.Path, v any, t reflect.Type) {
	if v == nil {
		s.wrong = append(s.wrong, field.Invalid(path, v, "must not be null"))
	}
	s.check(path, v, t)
}

// decode checks a value that has no fields or items, or should have some, by decoding it.
func (s *shape) decode(path *field.Path, v any, t reflect.Type) {
	data, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(data, reflect.New(t).Interface())
	}
	if err != nil {
		want := expected(v, t, err)
		if name := path.String(); strings.HasSuffix(name, "nodeSelector.matchLabels") || strings.HasSuffix(name, "nodeSelector.matchExpressions") {
			want = "must be a string: the labels stand directly in nodeSelector, like {pool: a}"
		}
		s.wrong = append(s.wrong, field.Invalid(path, v, want))
	}
}

// examples are values of the types that users shorten to their only field.
var examples = map[reflect.Type]string{
	reflect.TypeFor[v1alpha1.MaxConcurrent]():         "{value: 2}",
	reflect.TypeFor[v1alpha1.Adaptive]():              "{min: 1, max: 8}",
	reflect.TypeFor[v1alpha1.RateLimit]():             "{fillFactor: 1s}",
	reflect.TypeFor[v1alpha1.LoadLimit]():             "{maxLoad: 80}",
	reflect.TypeFor[v1alpha1.LoadAvgLimit]():          "{maxLoad: 8}",
	reflect.TypeFor[v1alpha1.Pressure]():              "{cpu: {some: 60}}",
	reflect.TypeFor[v1alpha1.CPUPressure]():           "{some: 60}",
	reflect.TypeFor[v1alpha1.StallPressure]():         "{some: 20}",
	reflect.TypeFor[v1alpha1.Restarts]():              "{pace: false}",
	reflect.TypeFor[v1alpha1.Exemptions]():            "{namespaces: [kube-system]}",
	reflect.TypeFor[v1alpha1.ExemptIn]():              `{namespaces: ["kube-*"]}`,
	reflect.TypeFor[map[string]v1alpha1.LabelValue](): "{pool: a}",
	reflect.TypeFor[v1alpha1.PodSelection]():          "{terms: [{podSelector: {}}]}",
	reflect.TypeFor[v1alpha1.LabelSelector]():         "{matchLabels: {app: web}}",
	reflect.TypeFor[v1alpha1.PodBound]():              "{pods: 2}",
	reflect.TypeFor[map[string]v1alpha1.Quantity]():   "{cpu: 2}",
}

// expected returns what a field of type t expects instead of v, which cannot be decoded because of err.
func expected(v any, t reflect.Type, err error) string {
	switch reflect.Zero(t).Interface().(type) {
	case v1alpha1.Duration:
		return `must be a duration, like "1m30s"`
	case v1alpha1.Decimal:
		return `must be a whole number like 2, or a decimal in quotes like "0.5"`
	case v1alpha1.Quantity:
		return "must be an amount, like 2, 200m or 1.5Gi"
	case metav1.Time:
		return `must be a moment as in RFC 3339, like "2026-11-27T00:00:00+01:00"`
	}
	_, whole := v.(int64)
	_, isBool := v.(bool)
	switch kind := t.Kind(); {
	case examples[t] != "":
		return "must be a mapping, like " + examples[t]
	case kind == reflect.Struct, kind == reflect.Map:
		return "must be a mapping"
	case kind == reflect.Slice:
		return "must be a list"
	case kind == reflect.String && isBool:
		return `must be a string in quotes, like "true": without them, YAML reads On, Off, Yes and No as true or false`
	case kind == reflect.String:
		return "must be a string, in quotes if it looks like something else"
	case kind == reflect.Bool:
		return "must be true or false"
	case kind == reflect.Int32 && whole:
		return "must be a whole number of at most 32 bits"
	case kind == reflect.Int32, kind == reflect.Int64:
		return "must be a whole number"
	}
	return err.Error()
}

// jsonFields maps the JSON names of a struct's fields to their types.
func jsonFields(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			maps.Copy(fields, jsonFields(f.Type))
		} else if name != "" && name != "-" {
			fields[name] = f.Type
		}
	}
	return fields
}
