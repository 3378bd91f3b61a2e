package crd

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// maxStarts bounds every number of pods: at a time, and in a burst.
const maxStarts = 1000

func validateThrottle(path *field.Path, t v1alpha1.ThrottleConfig) field.ErrorList {
	errs := validateConcurrent(path.Child("maxConcurrent"), t.MaxConcurrent)
	errs = append(errs, validateAdaptive(path.Child("adaptive"), t.Adaptive)...)
	errs = append(errs, validateRate(path.Child("rateLimit"), t.RateLimit)...)
	if c := t.CPU; c != nil {
		errs = append(errs, validateLoad(path.Child("cpu"), c.MaxLoad, c.IncrementBy, percentage, percentageAdded)...)
	}
	if i := t.IO; i != nil {
		errs = append(errs, validateLoad(path.Child("io"), i.MaxLoad, i.IncrementBy, percentage, percentageAdded)...)
	}
	if l := t.LoadAvg; l != nil {
		errs = append(errs, validateLoad(path.Child("loadAvg"), l.MaxLoad, l.IncrementBy, load, loadAdded)...)
	}
	errs = append(errs, validatePressure(path.Child("pressure"), t.Pressure)...)
	errs = append(errs, validateStarts(path.Child("maxPulling"), t.MaxPulling)...)
	return append(errs, validateSpan(path.Child("noProgressAfter"), t.NoProgressAfter, loanSpan)...)
}

func validateConcurrent(path *field.Path, m *v1alpha1.MaxConcurrent) (errs field.ErrorList) {
	if m == nil {
		return nil
	}
	if m.Value == nil && m.PerCore == nil {
		errs = append(errs, field.Required(path, "must set value or perCore"))
	}
	errs = append(errs, validateStarts(path.Child("value"), m.Value)...)
	return append(errs, validateDecimal(path.Child("perCore"), m.PerCore, perCore)...)
}

func validateAdaptive(path *field.Path, a *v1alpha1.Adaptive) field.ErrorList {
	if a == nil {
		return nil
	}
	errs := validateDecimal(path.Child("targetPressure"), a.TargetPressure, percentage)
	errs = append(errs, validateStarts(path.Child("min"), a.Min)...)
	errs = append(errs, validateStarts(path.Child("max"), a.Max)...)
	if len(errs) == 0 && a.Min != nil && a.Max != nil && *a.Max < *a.Min {
		errs = append(errs, field.Invalid(path.Child("max"), *a.Max, "must not be less than min"))
	}
	return errs
}

func validateRate(path *field.Path, r *v1alpha1.RateLimit) (errs field.ErrorList) {
	if r == nil {
		return nil
	}
	if r.FillFactor == "" {
		errs = append(errs, field.Required(path.Child("fillFactor"), fillSpan.want))
	} else {
		errs = append(errs, validateSpan(path.Child("fillFactor"), &r.FillFactor, fillSpan)...)
	}
	return append(errs, validateStarts(path.Child("burst"), r.Burst)...)
}

func validateLoad(path *field.Path, maxLoad, incrementBy *v1alpha1.Decimal, most, added decimals) field.ErrorList {
	return append(validateRequired(path.Child("maxLoad"), maxLoad, most),
		validateDecimal(path.Child("incrementBy"), incrementBy, added)...)
}

func validatePressure(path *field.Path, p *v1alpha1.Pressure) (errs field.ErrorList) {
	if p == nil {
		return nil
	}
	if p.CPU == nil && p.Memory == nil && p.IO == nil && p.Window == nil {
		errs = append(errs, field.Required(path, "must set cpu, memory, io or window"))
	}
	if c, path := p.CPU, path.Child("cpu"); c != nil {
		errs = append(errs, validateRequired(path.Child("some"), c.Some, percentage)...)
		errs = append(errs, validateDecimal(path.Child("minUtilization"), c.MinUtilization, percentageAdded)...)
	}
	errs = append(errs, validateStall(path.Child("memory"), p.Memory)...)
	errs = append(errs, validateStall(path.Child("io"), p.IO)...)
	return append(errs, validateSpan(path.Child("window"), p.Window, windowSpan)...)
}

func validateStall(path *field.Path, s *v1alpha1.StallPressure) (errs field.ErrorList) {
	if s == nil {
		return nil
	}
	if s.Some == nil && s.Full == nil {
		errs = append(errs, field.Required(path, "must set some or full"))
	}
	errs = append(errs, validateDecimal(path.Child("some"), s.Some, percentage)...)
	return append(errs, validateDecimal(path.Child("full"), s.Full, percentage)...)
}
