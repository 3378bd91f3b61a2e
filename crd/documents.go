package crd

import (
	"errors"
	"fmt"

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
	if object["kind"] != v1alpha1.PolicyKind {
		if errs := validateKind(object, v1alpha1.Kind); len(errs) > 0 {
			return invalid(v1alpha1.Kind, fieldErrors(eitherKind(errs)))
		}
		config, unknown, errs := decode(object)
		if errs = append(unknown, errs...); len(errs) > 0 {
			return invalid(v1alpha1.Kind, fieldErrors(errs))
		}
		if d.Config != nil {
			return invalid(v1alpha1.Kind, errTwoConfigs)
		}
		d.Config = config
		return nil
	}
	policy, err := parsePolicy(object)
	if err != nil {
		return err
	}
	for _, other := range d.Policies {
		if other.Name == policy.Name {
			return invalid(v1alpha1.PolicyKind, field.Duplicate(field.NewPath("metadata", "name"), policy.Name))
		}
	}
	d.Policies = append(d.Policies, policy)
	return nil
}

// eitherKind has the fault of the kind name both that a file may hold.
func eitherKind(errs field.ErrorList) field.ErrorList {
	for _, err := range errs {
		if err.Field == "kind" {
			err.Detail = "must be " + v1alpha1.Kind + " or " + v1alpha1.PolicyKind
		}
	}
	return errs
}

func parsePolicy(object map[string]any) (*v1alpha1.StartPolicy, error) {
	if errs := validateKind(object, v1alpha1.PolicyKind); len(errs) > 0 {
		return nil, invalid(v1alpha1.PolicyKind, fieldErrors(errs))
	}
	policy, unknown, errs := decodePolicy(object)
	if errs = append(unknown, errs...); len(errs) > 0 {
		return nil, invalid(v1alpha1.PolicyKind, fieldErrors(errs))
	}
	return policy, nil
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
