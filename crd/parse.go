package crd

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ErrInvalid is wrapped by every error about the content of a file. Errors of reading
// the file do not wrap it.
var ErrInvalid = errors.New("invalid")

// invalid wraps an error about an object of a kind.
func invalid(kind string, err error) error { return fmt.Errorf("%w %s: %w", ErrInvalid, kind, err) }

// decode makes the typed object T from a document and validates it. It returns apart the fields that the type does
// not have, and leaves them out of the object. Where there are errs, the object is nil.
func decode[T any](object map[string]any, validate func(*T) field.ErrorList) (typed *T, unknown, errs field.ErrorList) {
	var found shape
	found.check(nil, object, reflect.TypeFor[T]())
	unknown, errs = found.unknown, found.wrong
	typed = new(T)
	if len(errs) == 0 {
		data, err := json.Marshal(object)
		if err == nil {
			err = utiljson.Unmarshal(data, typed)
		}
		if err != nil {
			errs = field.ErrorList{field.InternalError(nil, err)}
		} else {
			errs = validate(typed)
		}
	}
	if len(errs) > 0 {
		return nil, unknown, errs
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
