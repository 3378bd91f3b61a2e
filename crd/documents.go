package crd

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// Documents are the objects of a file.
type Documents struct {
	// Config is nil if the file has none.
	Config *v1alpha1.PacemakerConfig
	// Policies have distinct names.
	Policies []*v1alpha1.StartPolicy
}

// Parse reads and validates the objects in data, which is YAML or JSON: at most one PacemakerConfig
// and any number of StartPolicies. An unknown field is an error. Every error wraps ErrInvalid and
// names the kind of the object. If fields are wrong, it also wraps a *field.Error for each, with the
// path of the field and what was expected.
func Parse(data []byte) (found Documents, err error) {
	objects, err := documents(data)
	if err != nil {
		return found, invalid(v1alpha1.Kind, err)
	}
	if len(objects) == 0 {
		return found, invalid(v1alpha1.Kind, errors.New("empty, expected a PacemakerConfig or StartPolicies"))
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
		policy, err := read(object, v1alpha1.PolicyKind, ValidatePolicy)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(d.Policies, func(other *v1alpha1.StartPolicy) bool { return other.Name == policy.Name }) {
			return invalid(v1alpha1.PolicyKind, field.Duplicate(field.NewPath("metadata", "name"), policy.Name))
		}
		d.Policies = append(d.Policies, policy)
		return nil
	}
	config, err := read(object, v1alpha1.Kind, Validate)
	if err == nil && d.Config != nil {
		err = invalid(v1alpha1.Kind, errors.New("more than one PacemakerConfig, expected one at most"))
	}
	d.Config = config
	return err
}

// read reads an object of a kind.
func read[T any](object map[string]any, kind string, validate func(*T) field.ErrorList) (typed *T, err error) {
	errs := validateType(object)
	if len(errs) == 0 {
		var unknown field.ErrorList
		typed, unknown, errs = decode(object, validate)
		errs = append(unknown, errs...)
	}
	if len(errs) > 0 {
		return nil, invalid(kind, fieldErrors(errs))
	}
	return typed, nil
}

// validateType checks the API version and the kind of an object.
func validateType(object map[string]any) (errs field.ErrorList) {
	if version := v1alpha1.GroupVersion.String(); object["apiVersion"] != version {
		errs = append(errs, field.Invalid(field.NewPath("apiVersion"), object["apiVersion"], "must be "+version))
	}
	if kind := object["kind"]; kind != v1alpha1.Kind && kind != v1alpha1.PolicyKind {
		errs = append(errs, field.Invalid(field.NewPath("kind"), kind, "must be "+v1alpha1.Kind+" or "+v1alpha1.PolicyKind))
	}
	return errs
}

// Load reads and parses the file at path. Every error names the file.
func Load(path string) (Documents, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Documents{}, fmt.Errorf("read configuration: %w", err)
	}
	found, err := Parse(data)
	if err != nil {
		return Documents{}, fmt.Errorf("%s: %w", path, err)
	}
	return found, nil
}
