package crd

import (
	"fmt"
	"slices"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// ValidatePolicy returns an error for each field of a policy that is wrong, with the path of the field
// and what was expected. The custom resource definition has the same rules.
func ValidatePolicy(policy *v1alpha1.StartPolicy) (faults field.ErrorList) {
	spec, c := policy.Spec, checker{field.NewPath("spec"), &faults}
	checker{field.NewPath("metadata", "name"), &faults}.name(policy.Name)
	c.at("instance").instance(spec.Instance)
	c.at("nodeSelector").labels(spec.NodeSelector)
	validateTerms(c.at("selector", "terms"), spec.Selector.Terms)
	validateSelector(c.at("bypassSelector"), spec.BypassSelector)
	validateGroupBy(c.at("groupBy"), spec.GroupBy)
	validateLimits(c.at("limits"), spec.Limits)
	validateOverrides(c.at("temporaryOverrides"), spec.TemporaryOverrides)
	c.span("maxWait", spec.MaxWait, longSpan)
	c.span("openAfter", spec.OpenAfter, openSpan)
	validateScope(c, spec)
	return faults
}

func validateTerms(c checker, terms []v1alpha1.PodSelectorTerm) {
	c.anyOf("must have at least one term, like {podSelector: {}} for every pod", len(terms) > 0)
	if !c.atMost(maxTerms, len(terms)) {
		return
	}
	for i, t := range terms {
		c := c.index(i)
		c.anyOf("must have podSelector, namespaceSelector or both", t.PodSelector != nil, t.NamespaceSelector != nil)
		validateSelector(c.at("podSelector"), t.PodSelector)
		validateSelector(c.at("namespaceSelector"), t.NamespaceSelector)
	}
}

func validateSelector(c checker, s *v1alpha1.LabelSelector) {
	if s == nil {
		return
	}
	c.at("matchLabels").labels(s.MatchLabels)
	c = c.at("matchExpressions")
	if !c.atMost(maxRequirements, len(s.MatchExpressions)) {
		return
	}
	for i, r := range s.MatchExpressions {
		validateRequirement(c.index(i), r)
	}
}

func validateRequirement(c checker, r v1alpha1.LabelRequirement) {
	c.at("key").invalid(r.Key, "must be a label name: ", validation.IsQualifiedName(r.Key)...)
	known := []metav1.LabelSelectorOperator{metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist}
	compares := r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpNotIn
	switch values := c.at("values"); {
	case !slices.Contains(known, r.Operator):
		c.add(field.NotSupported(c.path.Child("operator"), r.Operator, known))
	case !values.atMost(maxLabelValues, len(r.Values)):
	case compares != (len(r.Values) > 0):
		values.invalid(r.Values, "", "must have entries with the operators In and NotIn, and none with Exists and DoesNotExist")
	}
	for i, v := range r.Values {
		c.at("values").index(i).labelValue(v)
	}
}

func validateGroupBy(c checker, text string) {
	switch {
	case utf8.RuneCountInString(text) > maxGroupBy:
		c.add(field.TooLongCharacters(c.path, text, maxGroupBy))
	case text != "" && !startpolicy.ValidGroupBy(text):
		c.invalid(text, "", `must be a JSONPath of fields, indexes, [*] and filters like [?(@.name=="app")], like .spec.containers[0].image`)
	}
}

// validateScope checks that a policy sets only what its scope supports.
func validateScope(c checker, spec v1alpha1.StartPolicySpec) {
	oneOf(c, "scope", spec.GetScope(), v1alpha1.ScopeNode, v1alpha1.ScopeCluster)
	switch spec.GetScope() {
	case v1alpha1.ScopeNode:
		if spec.OpenAfter != nil {
			c.add(field.Forbidden(c.path.Child("openAfter"), "must be absent, for the scope is not Cluster"))
		}
	case v1alpha1.ScopeCluster:
		only := fmt.Sprintf("must be starting.pods from 1 to %d and nothing else, for the scope is Cluster", maxClusterPods)
		if !onlyStartingPods(spec.Limits) {
			c.add(field.Forbidden(c.path.Child("limits"), only))
		}
		if slices.ContainsFunc(spec.TemporaryOverrides, func(o v1alpha1.TemporaryOverride) bool { return !onlyStartingPods(o.Limits) }) {
			c.add(field.Forbidden(c.path.Child("temporaryOverrides"), "every limits "+only))
		}
	}
}

func onlyStartingPods(l v1alpha1.PolicyLimits) bool {
	s := l.Starting
	return s != nil && s.Pods != nil && *s.Pods >= 1 && *s.Pods <= maxClusterPods && s.Requests == nil && l.Running == nil && l.Pacer == nil
}
