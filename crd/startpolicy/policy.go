package startpolicy

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// Policy is a compiled StartPolicy. Make one with [Compile]. It is safe for concurrent use.
type Policy struct {
	// NeedsNamespaces reports whether the policy selects by labels of namespaces other than
	// their names.
	NeedsNamespaces bool

	groupBy   string // a JSONPath; if empty, all pods form one group
	terms     []term
	bypass    labels.Selector
	limits    v1alpha1.PolicyLimits
	overrides []override
}

// term is one alternative of a selector.
type term struct{ pod, namespace labels.Selector }

// Compile compiles a valid policy, which must not be changed afterwards.
func Compile(policy *v1alpha1.StartPolicy) *Policy {
	spec := policy.Spec
	p := &Policy{groupBy: spec.GroupBy, limits: spec.Limits, bypass: labels.Nothing()}
	for _, t := range spec.Selector.Terms {
		one := term{pod: t.PodSelector.Selector(), namespace: t.NamespaceSelector.Selector()}
		p.terms = append(p.terms, one)
		named, _ := one.namespace.Requirements()
		p.NeedsNamespaces = p.NeedsNamespaces || slices.ContainsFunc(named, func(r labels.Requirement) bool { return r.Key() != corev1.LabelMetadataName })
	}
	if spec.BypassSelector != nil {
		p.bypass = spec.BypassSelector.Selector()
	}
	for _, o := range spec.TemporaryOverrides {
		p.overrides = append(p.overrides, override{begin: o.Begin.Time(), end: o.End.Time(), limits: o.Limits})
	}
	return p
}

// Match is how a policy applies to a pod.
type Match struct {
	// Group is the value that the pods of the group have in common. It is empty if the policy
	// has one group.
	Group string
	// Bypass reports whether the policy counts the pod but never holds it.
	Bypass bool
}

// Match reports whether the policy applies to a pod, and how. namespace holds the known labels of
// its namespace, at least its name. The facts must have been extracted with the [Needs] of the
// policy.
func (p *Policy) Match(pod Facts, namespace map[string]string) (m Match, ok bool) {
	selected := slices.ContainsFunc(p.terms, func(t term) bool {
		return t.pod.Matches(labels.Set(pod.Labels)) && t.namespace.Matches(labels.Set(namespace))
	})
	if !selected {
		return Match{}, false
	}
	if p.groupBy != "" {
		if m.Group, ok = pod.Values[p.groupBy]; !ok {
			return Match{}, false
		}
	}
	m.Bypass = p.bypass.Matches(labels.Set(pod.Labels))
	return m, true
}
