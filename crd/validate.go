package crd

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

const (
	maxSelectorLabels = 16
	maxPriority       = 1_000_000
	maxStarts         = 1000 // at a time, and in a burst
	maxNamespaces     = 64
)

// span is what a duration field accepts.
type span struct {
	min, max time.Duration
	want     string
}

var (
	longSpan   = span{time.Second, 24 * time.Hour, `must be a duration from 1s to 24h in whole h, m, s or ms, like "5m"`}
	settleSpan = span{0, time.Hour, `must be a duration from 0s to 1h in whole h, m, s or ms, like "5s"`}
	fillSpan   = span{time.Millisecond, time.Hour, `must be a duration from 1ms to 1h in whole h, m, s or ms, like "1s"`}
)

// Validate returns every fault of a config, each with the path of its field and
// what was expected there. The custom resource definition has the same rules.
func Validate(config *v1alpha1.PacemakerConfig) field.ErrorList {
	errs := validateName(field.NewPath("metadata", "name"), config.Name)
	spec, path := config.Spec, field.NewPath("spec")
	errs = append(errs, validateSelector(path.Child("nodeSelector"), spec.NodeSelector)...)
	errs = append(errs, validateRange(path.Child("priority"), &spec.Priority, -maxPriority, maxPriority, "-1000000 to 1000000")...)
	errs = append(errs, validateThrottle(path.Child("throttleConfig"), spec.ThrottleConfig)...)
	errs = append(errs, validateTimes(path, spec)...)
	return append(errs, validateNamespaces(path.Child("exemptions", "namespaces"), spec.Exemptions.Namespaces)...)
}

func validateName(path *field.Path, name string) (errs field.ErrorList) {
	if name == "" {
		return field.ErrorList{field.Required(path, "must be the name of this config, like \"default\"")}
	}
	for _, fault := range validation.IsDNS1123Subdomain(name) {
		errs = append(errs, field.Invalid(path, name, fault))
	}
	return errs
}

func validateSelector(path *field.Path, selector map[string]v1alpha1.LabelValue) (errs field.ErrorList) {
	if len(selector) > maxSelectorLabels {
		return field.ErrorList{field.TooMany(path, len(selector), maxSelectorLabels)}
	}
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		for _, fault := range validation.IsQualifiedName(key) {
			errs = append(errs, field.Invalid(path, key, "every key must be a label name: "+fault))
		}
		for _, fault := range validation.IsValidLabelValue(string(selector[key])) {
			errs = append(errs, field.Invalid(path.Child(key), string(selector[key]), "must be a label value: "+fault))
		}
	}
	return errs
}

func validateThrottle(path *field.Path, throttle v1alpha1.ThrottleConfig) (errs field.ErrorList) {
	if m, path := throttle.MaxConcurrent, path.Child("maxConcurrent"); m != nil {
		if m.Value == nil && m.PerCore == nil {
			errs = append(errs, field.Required(path, "must set value or perCore"))
		}
		errs = append(errs, validateRange(path.Child("value"), m.Value, 1, maxStarts, "1 to 1000")...)
		errs = append(errs, validatePerCore(path.Child("perCore"), m.PerCore)...)
	}
	if r, path := throttle.RateLimit, path.Child("rateLimit"); r != nil {
		if r.FillFactor == "" {
			errs = append(errs, field.Required(path.Child("fillFactor"), fillSpan.want))
		} else {
			errs = append(errs, validateSpan(path.Child("fillFactor"), &r.FillFactor, fillSpan)...)
		}
		errs = append(errs, validateRange(path.Child("burst"), r.Burst, 1, maxStarts, "1 to 1000")...)
	}
	return errs
}

func validateTimes(path *field.Path, spec v1alpha1.PacemakerConfigSpec) field.ErrorList {
	errs := validateSpan(path.Child("startTimeout"), spec.StartTimeout, longSpan)
	errs = append(errs, validateSpan(path.Child("maxWait"), spec.MaxWait, longSpan)...)
	errs = append(errs, validateSpan(path.Child("settleTime"), spec.SettleTime, settleSpan)...)
	if len(errs) == 0 && spec.GetSettleTime() >= spec.GetStartTimeout() {
		errs = append(errs, field.Invalid(path.Child("settleTime"), spec.GetSettleTime().String(),
			"must be shorter than startTimeout, which is "+spec.GetStartTimeout().String()))
	}
	return errs
}

func validateNamespaces(path *field.Path, namespaces []string) (errs field.ErrorList) {
	if len(namespaces) > maxNamespaces {
		return field.ErrorList{field.TooMany(path, len(namespaces), maxNamespaces)}
	}
	for i, namespace := range namespaces {
		for _, fault := range validation.IsDNS1123Label(namespace) {
			errs = append(errs, field.Invalid(path.Index(i), namespace, "must be the name of a namespace: "+fault))
		}
		if slices.Contains(namespaces[:i], namespace) {
			errs = append(errs, field.Duplicate(path.Index(i), namespace))
		}
	}
	return errs
}

// validateRange checks a number that is there.
func validateRange(path *field.Path, n *int32, lowest, highest int32, want string) field.ErrorList {
	if n == nil || *n >= lowest && *n <= highest {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *n, "must be a whole number from "+want)}
}

// validateSpan checks a duration that is there.
func validateSpan(path *field.Path, d *v1alpha1.Duration, s span) field.ErrorList {
	if d == nil {
		return nil
	}
	if v, err := d.Parse(); err == nil && v >= s.min && v <= s.max {
		return nil
	}
	return field.ErrorList{field.Invalid(path, string(*d), s.want)}
}

func validatePerCore(path *field.Path, perCore *intstr.IntOrString) field.ErrorList {
	if perCore == nil {
		return nil
	}
	if _, err := v1alpha1.MilliPerCore(*perCore); err == nil {
		return nil
	}
	return field.ErrorList{field.Invalid(path, perCore.String(),
		`must be a number from "0.001" to 100 with at most three decimal places, like "0.5"`)}
}
