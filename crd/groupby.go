package crd

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
)

// grouped has the parts of a pod in which a groupBy looks.
type grouped struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     corev1.PodSpec    `json:"spec"`
}

// UnknownField returns the path of the first field in a valid groupBy that no pod has, like .spec.contaners. It returns
// an empty string if every field exists.
func UnknownField(groupBy string) (read string) {
	t := reflect.TypeFor[grouped]()
	for _, name := range startpolicy.PathOf(groupBy) {
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if name == startpolicy.Element {
			if t.Kind() != reflect.Slice {
				return ""
			}
			t, read = t.Elem(), read+name
			continue
		}
		read += "." + name
		known := t.Kind() == reflect.Map
		switch {
		case known:
			t = t.Elem()
		case reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()):
			return "" // its JSON has other fields than the Go type
		case t.Kind() == reflect.Struct:
			t, known = jsonFields(t)[name]
		}
		if !known {
			return read
		}
	}
	return ""
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
