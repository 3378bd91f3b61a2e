package crd

import (
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

var (
	durationType    = reflect.TypeFor[v1alpha1.Duration]()
	quantityType    = reflect.TypeFor[v1alpha1.Quantity]()
	decimalType     = reflect.TypeFor[v1alpha1.Decimal]()
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
)

// shape collects where a document differs in form from the Go type it is meant
// for. The JSON decoders stop at the first such place, name no path where a type
// decodes itself, and do not say what was expected.
type shape struct {
	unknown field.ErrorList // fields that the type does not have
	wrong   field.ErrorList // values of another kind than the field's
}

// check compares v, as document returns it, with t. Null is an absent field.
func (s *shape) check(path *field.Path, v any, t reflect.Type) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case v == nil:
	case t == decimalType:
		s.expect(path, v, isInt32(v) || isString(v), `must be a whole number like 2, or a decimal in quotes like "0.5"`)
	case t == quantityType:
		_, whole := v.(int64)
		s.expect(path, v, whole || isString(v), "must be an amount, like 2, 200m or 1.5Gi")
	case reflect.PointerTo(t).Implements(unmarshalerType):
		// Times and the like in metadata: the decoder judges them.
	case t.Kind() == reflect.Struct:
		s.checkStruct(path, v, t)
	case t.Kind() == reflect.Map:
		object, ok := v.(map[string]any)
		s.expect(path, v, ok, "must be a mapping")
		for _, key := range slices.Sorted(maps.Keys(object)) {
			s.checkItem(path.Child(key), object[key], t.Elem())
		}
	case t.Kind() == reflect.Slice:
		list, ok := v.([]any)
		s.expect(path, v, ok, "must be a list")
		for i, item := range list {
			s.checkItem(path.Index(i), item, t.Elem())
		}
	default:
		s.checkScalar(path, v, t)
	}
}

func (s *shape) checkStruct(path *field.Path, v any, t reflect.Type) {
	object, ok := v.(map[string]any)
	s.expect(path, v, ok, "must be a mapping")
	known := jsonFields(t)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if fieldType, ok := known[name]; ok {
			s.check(path.Child(name), object[name], fieldType)
			continue
		}
		names := strings.Join(slices.Sorted(maps.Keys(known)), ", ")
		s.unknown = append(s.unknown, field.Forbidden(path.Child(name), "unknown field, must be one of: "+names))
	}
}

// checkItem checks a value in a list or mapping, where null is no value.
func (s *shape) checkItem(path *field.Path, v any, t reflect.Type) {
	s.expect(path, v, v != nil, "must not be null")
	s.check(path, v, t)
}

func (s *shape) checkScalar(path *field.Path, v any, t reflect.Type) {
	switch t.Kind() {
	case reflect.String:
		want := "must be a string, in quotes if it looks like something else"
		if t == durationType {
			want = `must be a duration, like "1m30s"`
		}
		s.expect(path, v, isString(v), want)
	case reflect.Bool:
		_, ok := v.(bool)
		s.expect(path, v, ok, "must be true or false")
	case reflect.Int32:
		want := "must be a whole number"
		if _, tooLarge := v.(int64); tooLarge {
			want = "must be a whole number of at most 32 bits"
		}
		s.expect(path, v, isInt32(v), want)
	case reflect.Int64:
		_, ok := v.(int64)
		s.expect(path, v, ok, "must be a whole number")
	}
}

func (s *shape) expect(path *field.Path, v any, ok bool, want string) {
	if !ok {
		s.wrong = append(s.wrong, field.Invalid(path, v, want))
	}
}

func isString(v any) bool {
	_, ok := v.(string)
	return ok
}

func isInt32(v any) bool {
	n, ok := v.(int64)
	return ok && n >= math.MinInt32 && n <= math.MaxInt32
}

// jsonFields maps the JSON names of a struct's fields to their types.
func jsonFields(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if strings.Contains(options, "inline") {
			maps.Copy(fields, jsonFields(f.Type))
		} else if name != "" && name != "-" {
			fields[name] = f.Type
		}
	}
	return fields
}
