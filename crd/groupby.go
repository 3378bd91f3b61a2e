package crd

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/jsonpath"
)

// grouped has the parts of a pod in which a groupBy looks.
type grouped struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     corev1.PodSpec    `json:"spec"`
}

// UnknownField returns the path of the first field in a valid groupBy that no pod has, like .spec.contaners. It returns
// an empty string if every field exists, or if the path does not show which fields it reads, as in a range.
func UnknownField(groupBy string) string {
	if !strings.HasPrefix(groupBy, "{") {
		groupBy = "{" + groupBy + "}"
	}
	parsed, err := jsonpath.Parse("groupBy", groupBy)
	if err != nil || strings.Contains(groupBy, "{range") || strings.Contains(groupBy, "{@") {
		return ""
	}
	for _, one := range parsed.Root.Nodes {
		if path, ok := one.(*jsonpath.ListNode); ok {
			if unknown := unknownIn(path.Nodes); unknown != "" {
				return unknown
			}
		}
	}
	return ""
}

func unknownIn(path []jsonpath.Node) (read string) {
	t := reflect.TypeFor[grouped]()
	for _, node := range path {
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		switch node := node.(type) {
		case *jsonpath.FieldNode:
			read += "." + node.Value
			known := t.Kind() == reflect.Map
			switch {
			case known:
				t = t.Elem()
			case reflect.PointerTo(t).Implements(unmarshaler):
				return "" // its fields are not those of the Go type
			case t.Kind() == reflect.Struct:
				t, known = jsonFields(t)[node.Value]
			}
			if !known {
				return read
			}
		case *jsonpath.ArrayNode, *jsonpath.FilterNode, *jsonpath.WildcardNode:
			if t.Kind() != reflect.Slice {
				return ""
			}
			t, read = t.Elem(), read+"[]"
		default:
			return ""
		}
	}
	return ""
}
