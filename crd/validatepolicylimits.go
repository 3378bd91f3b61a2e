package crd

import (
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

const (
	maxResources  = 16
	maxPolicyPods = 100_000
)

var multiplier = decimals{1, 1_000_000, `must be a number from "0.001" to 1000 with at most three decimal places, like 4 or "1.5"`}

func validatePolicyLimits(path *field.Path, l v1alpha1.PolicyLimits) (errs field.ErrorList) {
	if l.Starting == nil && l.Running == nil && l.Pacer == nil {
		errs = append(errs, field.Required(path, "must set starting, running or pacer"))
	}
	errs = append(errs, validateBound(path.Child("starting"), l.Starting)...)
	errs = append(errs, validateBound(path.Child("running"), l.Running)...)
	return append(errs, validatePacer(path.Child("pacer"), l.Pacer)...)
}

func validateBound(path *field.Path, b *v1alpha1.PodBound) (errs field.ErrorList) {
	if b == nil {
		return nil
	}
	if b.Pods == nil && b.Requests == nil {
		errs = append(errs, field.Required(path, "must set pods, requests or both"))
	}
	errs = append(errs, validateRange(path.Child("pods"), b.Pods, 0, maxPolicyPods, "0 to 100000")...)
	at := path.Child("requests")
	switch {
	case b.Requests != nil && len(b.Requests) == 0:
		errs = append(errs, field.Required(at, "must have at least one resource"))
	case len(b.Requests) > maxResources:
		return append(errs, field.TooMany(at, len(b.Requests), maxResources))
	}
	for _, name := range sortedKeys(b.Requests) {
		for _, fault := range validation.IsQualifiedName(name) {
			errs = append(errs, field.Invalid(at, name, "every key must be the name of a resource, like cpu or nvidia.com/gpu: "+fault))
		}
		if amount := b.Requests[name]; !isAmount(amount) {
			errs = append(errs, field.Invalid(at.Key(name), amount.String(), "must be an amount from 0 to 999Ti, like 2, 200m or 1.5Gi"))
		}
	}
	return errs
}

func isAmount(q v1alpha1.Quantity) bool {
	_, err := q.Milli()
	return err == nil
}

func validatePacer(path *field.Path, p *v1alpha1.Pacer) (errs field.ErrorList) {
	if p == nil {
		return nil
	}
	if (p.Exponential == nil) == (p.Linear == nil) {
		errs = append(errs, field.Forbidden(path, "must set one of exponential and linear"))
	}
	pods := func(at *field.Path, n int32) {
		errs = append(errs, validateRange(at, &n, 1, maxPolicyPods, "1 to 100000")...)
	}
	if e := p.Exponential; e != nil {
		at := path.Child("exponential")
		pods(at.Child("minInitial"), e.MinInitial)
		pods(at.Child("maxStagger"), e.MaxStagger)
		errs = append(errs, validateDecimal(at.Child("multiplier"), &e.Multiplier, multiplier)...)
	}
	if l := p.Linear; l != nil {
		pods(path.Child("linear", "step"), l.Step)
		pods(path.Child("linear", "maxStagger"), l.MaxStagger)
	}
	return errs
}

// validateOverrides leaves alone what is no moment: the status of the policy tells of
// that, and the rest of the policy is in force.
func validateOverrides(path *field.Path, all []v1alpha1.TemporaryOverride) (errs field.ErrorList) {
	if len(all) > maxOverrides {
		return field.ErrorList{field.TooMany(path, len(all), maxOverrides)}
	}
	for i, o := range all {
		at := path.Index(i)
		for _, m := range []struct{ name, text string }{{"begin", o.Begin}, {"end", o.End}} {
			switch {
			case m.text == "":
				errs = append(errs, field.Required(at.Child(m.name), "must be a moment as in RFC 3339"))
			case utf8.RuneCountInString(m.text) > maxMoment:
				errs = append(errs, field.TooLongCharacters(at.Child(m.name), m.text, maxMoment))
			}
		}
		begin, err := time.Parse(time.RFC3339, o.Begin)
		end, err2 := time.Parse(time.RFC3339, o.End)
		if err == nil && err2 == nil && end.Before(begin) {
			errs = append(errs, field.Invalid(at.Child("end"), o.End, "must not be before begin"))
		}
		errs = append(errs, validatePolicyLimits(at.Child("limits"), o.Limits)...)
	}
	return errs
}
