package crd

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-pacemaker/pod-pacemaker/crd/rules"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// Documents are the objects of a file.
type Documents struct {
	// Config is nil if the file has none.
	Config *v1alpha1.PacemakerConfig
	// Policies have distinct names.
	Policies []*v1alpha1.StartPolicy
}

// Ignored says which fields of the objects have no effect because the objects are from a file: what selects nodes, the
// priority, and an instance other than the daemon's. It is empty if there is none.
func (d Documents) Ignored(instance string) string {
	var all []string
	add := func(kind, name string, selector map[string]v1alpha1.LabelValue, of string, priority bool) {
		var fields []string
		for field, set := range map[string]bool{"nodeSelector": len(selector) > 0, "instance": of != "" && of != instance, "priority": priority} {
			if set {
				fields = append(fields, field)
			}
		}
		if slices.Sort(fields); len(fields) > 0 {
			all = append(all, fmt.Sprintf("%s %q has %s", kind, name, strings.Join(fields, ", ")))
		}
	}
	if c := d.Config; c != nil {
		add(v1alpha1.Kind, c.Name, c.Spec.NodeSelector, c.Spec.Instance, c.Spec.Priority != 0)
	}
	for _, p := range d.Policies {
		add(v1alpha1.PolicyKind, p.Name, p.Spec.NodeSelector, p.Spec.Instance, false)
	}
	if len(all) == 0 {
		return ""
	}
	return strings.Join(all, "; ") + ", without effect: a file applies to each daemon that reads it"
}

// Object is one object of a file. If Err is nil, either Config or Policy is set.
type Object struct {
	// Kind and Name are as in the file, and empty if it has none.
	Kind, Name string

	Config *v1alpha1.PacemakerConfig
	Policy *v1alpha1.StartPolicy
	// Err says why the object is invalid, as an error of Parse does. It is nil if the object is valid.
	Err error
}

// ParseAll reads and validates each object in data, which is YAML or JSON: any number of PacemakerConfigs and
// StartPolicies, as documents or as items of a List. Each Object has its own error. Unlike Parse, ParseAll accepts
// several PacemakerConfigs with different names. It returns at least one object.
func ParseAll(data []byte) (all []Object) {
	for _, d := range documents(data) {
		one := Object{Err: d.err}
		if d.err != nil {
			one.Err = invalid(v1alpha1.Kind, d.err)
		} else {
			one.read(d.object)
		}
		same := func(o Object) bool { return o.Err == nil && o.Kind == one.Kind && o.Name == one.Name }
		if one.Err == nil && slices.ContainsFunc(all, same) {
			one.Err = invalid(one.Kind, field.Duplicate(field.NewPath("metadata", "name"), one.Name))
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		return []Object{{Err: invalid(v1alpha1.Kind, errors.New("empty, expected a PacemakerConfig or StartPolicies"))}}
	}
	return all
}

func (o *Object) read(object map[string]any) {
	o.Kind, _, _ = unstructured.NestedString(object, "kind") // a value that is no string counts as absent
	o.Name, _, _ = unstructured.NestedString(object, "metadata", "name")
	if o.Kind == v1alpha1.PolicyKind {
		o.Policy, o.Err = read[v1alpha1.StartPolicy](object, v1alpha1.PolicyKind, rules.Policy)
	} else {
		o.Config, o.Err = read[v1alpha1.PacemakerConfig](object, v1alpha1.Kind, rules.Config)
	}
}

// Parse reads and validates the objects in data, which is YAML or JSON: at most one PacemakerConfig
// and any number of StartPolicies, as documents or as items of a List. An unknown field is an error.
// Every error wraps ErrInvalid and names the kind of the object. If fields are wrong, it also wraps a
// *field.Error for each, with the path of the field and what was expected.
func Parse(data []byte) (found Documents, err error) {
	all := ParseAll(data)
	for i, o := range all {
		switch {
		case o.Config != nil && found.Config != nil:
			err = invalid(v1alpha1.Kind, errors.New("more than one PacemakerConfig, expected one at most"))
		case o.Err != nil:
			err = o.Err
		case o.Policy != nil:
			found.Policies = append(found.Policies, o.Policy)
		default:
			found.Config = o.Config
		}
		if err != nil {
			if len(all) > 1 {
				err = fmt.Errorf("document %d: %w", i+1, err)
			}
			return Documents{}, err
		}
	}
	return found, nil
}

// read reads an object of a kind.
func read[T any](object map[string]any, kind string, check rules.Check) (typed *T, err error) {
	errs := validateType(object)
	if len(errs) == 0 {
		var unknown field.ErrorList
		typed, unknown, errs = decode[T](object, check)
		errs = append(unknown, errs...)
	}
	// The API server removes a null. In a file it stands for {} that somebody forgot, or it comes from a template.
	path := []string{"spec", "throttleConfig", "adaptive"}
	if value, set, _ := unstructured.NestedFieldNoCopy(object, path...); set && value == nil {
		errs = append(errs, field.Invalid(field.NewPath(path[0], path[1:]...), nil, "must be a mapping: {} switches it on, null does not"))
	}
	if len(errs) > 0 {
		return nil, invalid(kind, fieldErrors(errs))
	}
	return typed, nil
}

// validateType checks the API version and the kind of an object.
func validateType(object map[string]any) (errs field.ErrorList) {
	if version := v1alpha1.GroupVersion.String(); object["apiVersion"] != version {
		must := "must be " + version
		if isConvertible(object) {
			must += ": 'pod-pacemaker convert' translates objects of other projects"
		}
		errs = append(errs, field.Invalid(field.NewPath("apiVersion"), object["apiVersion"], must))
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
