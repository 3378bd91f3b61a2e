package startpolicy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

// mostValue is the longest value of a group, in bytes. A longer value is cut and ends with
// its hash.
const mostValue = 253

var errNothing = errors.New("it has no path")

// Expression is a groupBy: a JSONPath over the metadata and the spec of a pod.
// Make one with NewExpression; it is safe for concurrent use.
type Expression struct{ text string }

// NewExpression parses a JSONPath, with or without the braces around it. An error says what
// is wrong with it.
func NewExpression(text string) (*Expression, error) {
	if !strings.HasPrefix(text, "{") {
		text = "{" + text + "}"
	}
	e := &Expression{text: text}
	if strings.Trim(text, "{} ") == "" {
		return nil, errNothing
	}
	if _, err := e.parse(); err != nil {
		return nil, err
	}
	return e, nil
}

// parse parses the text. The result is good for one evaluation, because it keeps its
// position in a range.
func (e *Expression) parse() (path *jsonpath.JSONPath, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("panic: %v", fault)
		}
	}()
	path = jsonpath.New("groupBy").AllowMissingKeys(true)
	err = path.Parse(e.text)
	return path, err
}

// Value returns the value of the expression for a pod in its JSON form, as UTF-8. A value of
// more than 253 bytes is cut and ends with its hash. Value returns an empty string if the
// expression finds nothing or cannot be evaluated. It does not change the pod.
func (e *Expression) Value(pod map[string]any) (value string) {
	defer func() {
		if recover() != nil { // counts as an error
			value = ""
		}
	}()
	path, err := e.parse()
	if err != nil {
		return ""
	}
	var out bytes.Buffer
	if err := path.Execute(&out, pod); err != nil {
		return ""
	}
	return short(strings.ToValidUTF8(out.String(), "\ufffd"))
}

// short cuts a value that is too long. Different values stay different.
func short(value string) string {
	if len(value) <= mostValue {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	hash := "~" + hex.EncodeToString(sum[:8])
	return strings.ToValidUTF8(value[:mostValue-len(hash)], "") + hash
}
