package crd

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// maxBytes is far above the size of all the objects of a cluster.
const maxBytes = 1 << 24

// document is a YAML mapping, or why there is none.
type document struct {
	object map[string]any
	err    error
}

// tabs matches a line that is indented with a tab. The YAML parser names no tab.
var tabs = regexp.MustCompile(`(?m)^ *\t\s*[^\s#]`)

// documents returns the YAML mappings in data, and in place of a List its items. Their values are of the types
// that JSON has: nil, bool, string, int64, float64, []any and map[string]any. Only numbers that are not whole are
// float64. It returns nothing for a document without content.
func documents(data []byte) (all []document) {
	if len(data) > maxBytes {
		return []document{{err: fmt.Errorf("larger than %d bytes", maxBytes)}}
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		text, err := reader.Read()
		switch {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			return append(all, document{err: fmt.Errorf("not YAML: %w", err)})
		}
		var value any
		if json, bad := yaml.YAMLToJSONStrict(text); bad != nil {
			err = errors.New("not YAML: " + strings.Join(strings.Fields(bad.Error()), " ")) // on one line, for a log
			if tabs.Match(text) {
				err = fmt.Errorf("%w: a line begins with a tab, and YAML is indented with spaces", err)
			}
		} else {
			err = utiljson.Unmarshal(json, &value)
		}
		if err != nil {
			all = append(all, document{err: err})
			continue
		}
		all = append(all, objects(value)...)
	}
}

// objects returns the mapping that a document consists of, or the items of a List.
func objects(value any) (all []document) {
	if value == nil { // nothing but comments between two separators
		return nil
	}
	object, isObject := value.(map[string]any)
	items, isList := object["items"].([]any)
	switch {
	case !isObject:
		return []document{{err: errors.New("not a mapping of fields like apiVersion, kind and spec")}}
	case !isList || object["apiVersion"] != "v1" || object["kind"] != "List":
		return []document{{object: object}}
	}
	for _, item := range items {
		all = append(all, objects(item)...)
	}
	return all
}
