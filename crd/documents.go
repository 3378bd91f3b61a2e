package crd

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// Documents are the objects of a file.
type Documents struct {
	// Config is nil where the file has none.
	Config *v1alpha1.PacemakerConfig
	// Policies have different names.
	Policies []*v1alpha1.StartPolicy
}

var (
	errEmpty      = errors.New("empty, expected a PacemakerConfig or StartPolicies")
	errTwoConfigs = errors.New("more than one PacemakerConfig, expected one at most")
)

// Parse reads the objects in data, as YAML or JSON, and validates them: at most one PacemakerConfig
// and any number of StartPolicies. Unknown fields are errors. An error wraps ErrInvalid, and
// where a field is at fault, every *field.Error; its text has the kind of the object, and for each the field's path and
// what was expected.
func Parse(data []byte) (found Documents, err error) {
	objects, err := documents(data)
	if err != nil {
		return found, invalid(v1alpha1.Kind, err)
	}
	if len(objects) == 0 {
		return found, invalid(v1alpha1.Kind, errEmpty)
	}
	for i, object := range objects {
		if err := found.add(object); err != nil {
			if len(objects) > 1 {
				err = fmt.Errorf("document %d: %w", i+1, err)
			}
			return Documents{}, err
		}
	}
	return found, nil
}

func (d *Documents) add(object map[string]any) error {
	if object["kind"] == v1alpha1.PolicyKind {
		policy, err := readAs(object, v1alpha1.PolicyKind, "must be "+v1alpha1.PolicyKind, ValidatePolicy)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(d.Policies, func(other *v1alpha1.StartPolicy) bool { return other.Name == policy.Name }) {
			return invalid(v1alpha1.PolicyKind, field.Duplicate(field.NewPath("metadata", "name"), policy.Name))
		}
		d.Policies = append(d.Policies, policy)
		return nil
	}
	config, err := readAs(object, v1alpha1.Kind, "must be "+v1alpha1.Kind+" or "+v1alpha1.PolicyKind, Validate)
	switch {
	case err != nil:
		return err
	case d.Config != nil:
		return invalid(v1alpha1.Kind, errTwoConfigs)
	}
	d.Config = config
	return nil
}

// readAs reads an object that has to be of a kind, as wanted says.
func readAs[T any](object map[string]any, kind, wanted string, validate func(*T) field.ErrorList) (*T, error) {
	if errs := validateKind(object, kind, wanted); len(errs) > 0 {
		return nil, invalid(kind, fieldErrors(errs))
	}
	typed, unknown, errs := decode(object, validate)
	if errs = append(unknown, errs...); len(errs) > 0 {
		return nil, invalid(kind, fieldErrors(errs))
	}
	return typed, nil
}

// Load reads the file at path and parses it. Every error names the file.
func Load(path string) (Documents, error) {
	data, err := readFileUpTo(path, maxBytes) // and no more than Parse needs to see that it is too much
	if err != nil {
		return Documents{}, fmt.Errorf("read configuration: %w", err)
	}
	found, err := Parse(data)
	if err != nil {
		return Documents{}, fmt.Errorf("%s: %w", path, err)
	}
	return found, nil
}
