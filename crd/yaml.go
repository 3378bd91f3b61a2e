package crd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"go.yaml.in/yaml/v2"
)

// maxBytes is far above what a config with every list full needs.
const maxBytes = 1 << 18

// documents reads every YAML mapping in data. Their values are those that JSON
// knows (nil, bool, string, int64, float64, []any, map[string]any), where
// float64 is only used for numbers that are not whole.
func documents(data []byte) (all []map[string]any, err error) {
	if len(data) > maxBytes {
		return nil, fmt.Errorf("larger than %d bytes", maxBytes)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.SetStrict(true)
	for {
		var raw any
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("not YAML: %w", oneLine(err))
		}
		if raw == nil { // nothing but comments between two separators
			continue
		}
		value, err := jsonValue(raw)
		if err != nil {
			return nil, err
		}
		object, isObject := value.(map[string]any)
		if !isObject {
			return nil, errors.New("not a mapping of fields like apiVersion, kind and spec")
		}
		all = append(all, object)
	}
}

// oneLine puts what the decoder reports on several lines on one, for a log.
func oneLine(err error) error {
	if several, ok := errors.AsType[*yaml.TypeError](err); ok {
		return errors.New(strings.Join(several.Errors, "; "))
	}
	return err
}

// jsonValue turns what the YAML decoder made into what JSON knows.
func jsonValue(raw any) (any, error) {
	switch v := raw.(type) {
	case map[any]any:
		return jsonObject(v)
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			value, err := jsonValue(item)
			if err != nil {
				return nil, err
			}
			list[i] = value
		}
		return list, nil
	case int:
		return int64(v), nil
	case uint64:
		return float64(v), nil
	case float64:
		return wholeOrFloat(v), nil
	case nil, bool, string, int64:
		return v, nil
	default:
		return nil, fmt.Errorf("%v is of a type that JSON does not have", v)
	}
}

func jsonObject(raw map[any]any) (map[string]any, error) {
	object := make(map[string]any, len(raw))
	for key, item := range raw {
		switch key.(type) {
		case string, bool, int, int64:
		default:
			return nil, fmt.Errorf("the key %v is not a string", key)
		}
		name := fmt.Sprint(key)
		if _, twice := object[name]; twice {
			return nil, fmt.Errorf("the key %q is there twice", name)
		}
		value, err := jsonValue(item)
		if err != nil {
			return nil, err
		}
		object[name] = value
	}
	return object, nil
}

// wholeOrFloat does what JSON does with 5.0: it is 5.
func wholeOrFloat(v float64) any {
	const exact = 1 << 53
	if v == math.Trunc(v) && math.Abs(v) <= exact {
		return int64(v)
	}
	return v
}
