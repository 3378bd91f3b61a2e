package crd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// ErrInvalid is wrapped by every error about the content of a file, in
// contrast to those of reading it.
var ErrInvalid = errors.New("invalid")

// invalid says why an object of a kind is not valid.
func invalid(kind string, why error) error { return fmt.Errorf("%w %s: %w", ErrInvalid, kind, why) }

// readFileUpTo reads one byte more than most, at most.
func readFileUpTo(path string, most int64) (data []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(io.LimitReader(f, most+1))
}

// validateKind checks that object says that it is of this kind; wanted says so for people.
func validateKind(object map[string]any, kind, wanted string) (errs field.ErrorList) {
	version := v1alpha1.GroupVersion.String()
	for _, want := range []struct{ name, value, text string }{{"apiVersion", version, "must be " + version}, {"kind", kind, wanted}} {
		switch object[want.name] {
		case want.value:
		case nil:
			errs = append(errs, field.Required(field.NewPath(want.name), want.text))
		default:
			errs = append(errs, field.Invalid(field.NewPath(want.name), object[want.name], want.text))
		}
	}
	return errs
}

// decode makes the typed object T from a document and validates it. unknown are the
// fields that it left out because the type does not have them; with any errs the
// object is nil.
func decode[T any](object map[string]any, validate func(*T) field.ErrorList) (typed *T, unknown, errs field.ErrorList) {
	var found shape
	found.check(nil, object, reflect.TypeFor[T]())
	if len(found.wrong) > 0 {
		return nil, found.unknown, found.wrong
	}
	typed = new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, typed); err != nil {
		// All else has the right form: this is a time in the metadata.
		errs = append(errs, field.Invalid(field.NewPath("metadata"), object["metadata"], err.Error()))
	} else {
		errs = validate(typed)
	}
	if len(errs) > 0 {
		return nil, found.unknown, errs
	}
	return typed, found.unknown, nil
}

// fieldErrors puts its errors on one line, for a log.
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
