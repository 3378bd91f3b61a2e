package crd

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// maxBytes is far above the size of a config in which every list is full.
const maxBytes = 1 << 18

// documents returns the YAML mappings in data. Their values are of the types that JSON has: nil,
// bool, string, int64, float64, []any and map[string]any. Only numbers that are not whole are float64.
func documents(data []byte) (all []map[string]any, err error) {
	if len(data) > maxBytes {
		return nil, fmt.Errorf("larger than %d bytes", maxBytes)
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		text, err := reader.Read()
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("not YAML: %w", err)
		}
		if text, err = yaml.YAMLToJSONStrict(text); err != nil {
			return nil, errors.New("not YAML: " + strings.Join(strings.Fields(err.Error()), " ")) // on one line, for a log
		}
		var value any
		if err := utiljson.Unmarshal(text, &value); err != nil {
			return nil, err
		}
		switch object := value.(type) {
		case nil: // nothing but comments between two separators
		case map[string]any:
			all = append(all, object)
		default:
			return nil, errors.New("not a mapping of fields like apiVersion, kind and spec")
		}
	}
}
