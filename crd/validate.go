package crd

import (
	"maps"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

const (
	maxSelectorLabels = 16
	maxPriority       = 1_000_000
	maxNamespaces     = 64
)

// Validate returns every fault of a config, each with the path of its field and
// what was expected there. The custom resource definition has the same rules.
func Validate(config *v1alpha1.PacemakerConfig) field.ErrorList {
	errs := validateName(field.NewPath("metadata", "name"), config.Name)
	spec, path := config.Spec, field.NewPath("spec")
	errs = append(errs, validateMode(path.Child("mode"), spec.Mode)...)
	errs = append(errs, validateFairness(path.Child("fairness"), spec.Fairness)...)
	errs = append(errs, validateInstance(path.Child("instance"), spec.Instance)...)
	errs = append(errs, validateSelector(path.Child("nodeSelector"), spec.NodeSelector)...)
	errs = append(errs, validateRange(path.Child("priority"), &spec.Priority, -maxPriority, maxPriority, "-1000000 to 1000000")...)
	errs = append(errs, validateThrottle(path.Child("throttleConfig"), spec.ThrottleConfig)...)
	errs = append(errs, validateTimes(path, spec)...)
	exempt, exemptions := path.Child("exemptions"), spec.Exemptions
	errs = append(errs, validateNamespaces(exempt.Child("namespaces"), exemptions.Namespaces)...)
	errs = append(errs, validatePatterns(exempt.Child("daemonSets", "namespaces"), exemptions.DaemonSets.Namespaces)...)
	return append(errs, validatePatterns(exempt.Child("criticalPods", "namespaces"), exemptions.CriticalPods.Namespaces)...)
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

func validateMode(path *field.Path, mode v1alpha1.Mode) field.ErrorList {
	switch mode {
	case "", v1alpha1.ModeEnforce, v1alpha1.ModeShadow, v1alpha1.ModeOff:
		return nil
	}
	return field.ErrorList{field.NotSupported(path, mode, []v1alpha1.Mode{v1alpha1.ModeEnforce, v1alpha1.ModeShadow, v1alpha1.ModeOff})}
}

func validateFairness(path *field.Path, fairness v1alpha1.Fairness) field.ErrorList {
	switch fairness {
	case "", v1alpha1.FairnessNamespace, v1alpha1.FairnessNone:
		return nil
	}
	return field.ErrorList{field.NotSupported(path, fairness, []v1alpha1.Fairness{v1alpha1.FairnessNamespace, v1alpha1.FairnessNone})}
}

func validateInstance(path *field.Path, instance string) (errs field.ErrorList) {
	if instance == "" {
		return nil
	}
	for _, fault := range validation.IsDNS1123Label(instance) {
		errs = append(errs, field.Invalid(path, instance, "must be the name of a daemon's instance: "+fault))
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

// namespacePattern is what the custom resource definition asks for, too.
var namespacePattern = regexp.MustCompile(`^([*]|([*]-?)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(-?[*])?)$`)

const maxPattern = 63

func validatePatterns(path *field.Path, patterns []string) (errs field.ErrorList) {
	if len(patterns) > maxNamespaces {
		return field.ErrorList{field.TooMany(path, len(patterns), maxNamespaces)}
	}
	for i, pattern := range patterns {
		if len(pattern) > maxPattern || !namespacePattern.MatchString(pattern) {
			errs = append(errs, field.Invalid(path.Index(i), pattern,
				"must be the name of a namespace, or \"*\", or a name that begins or ends with '*', like \"kube-*\"; at most 63 characters"))
		}
		if slices.Contains(patterns[:i], pattern) {
			errs = append(errs, field.Duplicate(path.Index(i), pattern))
		}
	}
	return errs
}
