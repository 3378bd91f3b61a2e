package crd

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-pacemaker/pod-pacemaker/crd/rules"
)

// ErrInvalid is wrapped by every error about the content of a file. Errors of reading
// the file do not wrap it.
var ErrInvalid = errors.New("invalid")

// invalid wraps an error about an object of a kind.
func invalid(kind string, err error) error { return fmt.Errorf("%w %s: %w", ErrInvalid, kind, err) }

// decode checks a document and makes the typed object T from it, with the defaults of absent fields. It
// returns apart the fields that the kind does not have, and leaves them out of the object. Where there are errs, the object
// is nil.
func decode[T any](object map[string]any, check rules.Check) (typed *T, unknown, errs field.ErrorList) {
	object = runtime.DeepCopyJSON(object) // check fills in the defaults
	if unknown, errs = check(object); len(errs) > 0 {
		return nil, unknown, errs
	}
	typed = new(T)
	data, err := json.Marshal(object)
	if err == nil {
		err = utiljson.Unmarshal(data, typed)
	}
	if err != nil { // the Go type differs from the definition
		return nil, unknown, field.ErrorList{field.InternalError(nil, err)}
	}
	return typed, unknown, nil
}

// fieldErrors is an error of several, on one line for a log.
type fieldErrors field.ErrorList

func (e fieldErrors) Error() string {
	texts := make([]string, len(e))
	for i, err := range e {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (e fieldErrors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, err := range e {
		errs[i] = err
	}
	return errs
}
