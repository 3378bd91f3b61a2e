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

// CheckGroupBy returns what is wrong with a groupBy, which is a JSONPath over the metadata and the
// spec of a pod, with or without the braces around it.
func CheckGroupBy(text string) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("panic: %v", fault)
		}
	}()
	if strings.Trim(text, "{} ") == "" {
		return errNothing
	}
	_, err = parse(text)
	return err
}

// parse parses a groupBy. The result is good for one evaluation, because it keeps its position in
// a range.
func parse(text string) (path *jsonpath.JSONPath, err error) {
	if !strings.HasPrefix(text, "{") {
		text = "{" + text + "}"
	}
	path = jsonpath.New("groupBy").AllowMissingKeys(true)
	err = path.Parse(text)
	return path, err
}

// valueOf returns the value of a groupBy for a pod in its JSON form, as UTF-8. A value of more than
// 253 bytes is cut and ends with its hash. valueOf returns an empty string if the path finds nothing
// or cannot be evaluated. It does not change the pod.
func valueOf(groupBy string, pod map[string]any) (value string) {
	defer func() {
		if recover() != nil { // counts as an error
			value = ""
		}
	}()
	path, err := parse(groupBy)
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
