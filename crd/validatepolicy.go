package crd

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

const (
	maxTerms        = 16
	maxRequirements = 16
	maxLabelValues  = 64
	maxOverrides    = 32
	maxGroupBy      = 256 // characters, as the API server counts
	maxMoment       = 64  // the same
	maxClusterPods  = 1000
)

var openSpan = span{1e9, 3600e9, false, `must be a duration from 1s to 1h in whole h, m, s or ms, like "30s"`}

// ValidatePolicy returns every fault of a policy, each with the path of its field
// and what was expected there. The custom resource definition has the same rules,
// but for groupBy: whether that is a JSONPath, only this tells.
func ValidatePolicy(policy *v1alpha1.StartPolicy) field.ErrorList {
	errs := validateName(field.NewPath("metadata", "name"), policy.Name)
	spec, path := policy.Spec, field.NewPath("spec")
	errs = append(errs, validateInstance(path.Child("instance"), spec.Instance)...)
	errs = append(errs, validateSelector(path.Child("nodeSelector"), spec.NodeSelector)...)
	errs = append(errs, validateTerms(path.Child("selector", "terms"), spec.Selector.Terms)...)
	errs = append(errs, validateLabels(path.Child("bypassSelector"), spec.BypassSelector)...)
	errs = append(errs, validateGroupBy(path.Child("groupBy"), spec.GroupBy)...)
	errs = append(errs, validatePolicyLimits(path.Child("limits"), spec.Limits)...)
	errs = append(errs, validateOverrides(path.Child("temporaryOverrides"), spec.TemporaryOverrides)...)
	errs = append(errs, validateSpan(path.Child("openAfter"), spec.OpenAfter, openSpan)...)
	return append(errs, validateScope(path, spec)...)
}

func validateTerms(path *field.Path, terms []v1alpha1.PodSelectorTerm) (errs field.ErrorList) {
	switch {
	case len(terms) == 0:
		return field.ErrorList{field.Required(path, "must have at least one term, like {podSelector: {}} for every pod")}
	case len(terms) > maxTerms:
		return field.ErrorList{field.TooMany(path, len(terms), maxTerms)}
	}
	for i, t := range terms {
		at := path.Index(i)
		if t.PodSelector == nil && t.NamespaceSelector == nil {
			errs = append(errs, field.Required(at, "must have podSelector, namespaceSelector or both"))
		}
		errs = append(errs, validateLabels(at.Child("podSelector"), t.PodSelector)...)
		errs = append(errs, validateLabels(at.Child("namespaceSelector"), t.NamespaceSelector)...)
	}
	return errs
}

func validateLabels(path *field.Path, s *v1alpha1.LabelSelector) field.ErrorList {
	if s == nil {
		return nil
	}
	errs := validateSelector(path.Child("matchLabels"), s.MatchLabels)
	at := path.Child("matchExpressions")
	if len(s.MatchExpressions) > maxRequirements {
		return append(errs, field.TooMany(at, len(s.MatchExpressions), maxRequirements))
	}
	for i, r := range s.MatchExpressions {
		errs = append(errs, validateRequirement(at.Index(i), r)...)
	}
	return errs
}

func validateRequirement(path *field.Path, r v1alpha1.LabelRequirement) (errs field.ErrorList) {
	for _, fault := range validation.IsQualifiedName(r.Key) {
		errs = append(errs, field.Invalid(path.Child("key"), r.Key, "must be a label name: "+fault))
	}
	known := []v1alpha1.LabelOperator{v1alpha1.LabelIn, v1alpha1.LabelNotIn, v1alpha1.LabelExists, v1alpha1.LabelDoesNotExist}
	compares := r.Operator == v1alpha1.LabelIn || r.Operator == v1alpha1.LabelNotIn
	switch values := path.Child("values"); {
	case !slices.Contains(known, r.Operator):
		errs = append(errs, field.NotSupported(path.Child("operator"), r.Operator, known))
	case len(r.Values) > maxLabelValues:
		errs = append(errs, field.TooMany(values, len(r.Values), maxLabelValues))
	case compares != (len(r.Values) > 0):
		errs = append(errs, field.Invalid(values, r.Values, "must have entries with the operators In and NotIn, and none with Exists and DoesNotExist"))
	}
	for i, v := range r.Values {
		for _, fault := range validation.IsValidLabelValue(string(v)) {
			errs = append(errs, field.Invalid(path.Child("values").Index(i), string(v), "must be a label value: "+fault))
		}
	}
	return errs
}

func validateGroupBy(path *field.Path, text string) field.ErrorList {
	if utf8.RuneCountInString(text) > maxGroupBy {
		return field.ErrorList{field.TooLongCharacters(path, text, maxGroupBy)}
	}
	if text == "" {
		return nil
	}
	if text[0] != '.' && (text[0] != '{' || text[len(text)-1] != '}') {
		return field.ErrorList{field.Invalid(path, text, "must be a JSONPath, like .spec.containers[0].image")}
	}
	if _, err := startpolicy.NewExpression(text); err != nil {
		return field.ErrorList{field.Invalid(path, text, "must be a JSONPath, like .spec.containers[0].image: "+err.Error())}
	}
	return nil
}

// validateScope checks what the scope Cluster does not know, and Node.
func validateScope(path *field.Path, spec v1alpha1.StartPolicySpec) (errs field.ErrorList) {
	scopes := []v1alpha1.PolicyScope{v1alpha1.ScopeNode, v1alpha1.ScopeCluster}
	switch {
	case !slices.Contains(scopes, spec.GetScope()):
		errs = append(errs, field.NotSupported(path.Child("scope"), spec.Scope, scopes))
	case spec.GetScope() == v1alpha1.ScopeNode:
		if spec.OpenAfter != nil {
			errs = append(errs, field.Forbidden(path.Child("openAfter"), "must be absent, for the scope is not Cluster"))
		}
	default:
		errs = append(errs, validateClusterScope(path, spec)...)
	}
	return errs
}

func validateClusterScope(path *field.Path, spec v1alpha1.StartPolicySpec) (errs field.ErrorList) {
	only := fmt.Sprintf("must be starting.pods from 1 to %d and nothing else, for the scope is Cluster", maxClusterPods)
	if !onlyStartingPods(spec.Limits) {
		errs = append(errs, field.Forbidden(path.Child("limits"), only))
	}
	for _, o := range spec.TemporaryOverrides {
		if !onlyStartingPods(o.Limits) {
			return append(errs, field.Forbidden(path.Child("temporaryOverrides"), "every limits "+only))
		}
	}
	return errs
}

func onlyStartingPods(l v1alpha1.PolicyLimits) bool {
	s := l.Starting
	return s != nil && s.Pods != nil && *s.Pods >= 1 && *s.Pods <= maxClusterPods && s.Requests == nil && l.Running == nil && l.Pacer == nil
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
