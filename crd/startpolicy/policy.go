package startpolicy

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// NamespaceName is the label of every namespace that is its name.
const NamespaceName = "kubernetes.io/metadata.name"

// Policy is a StartPolicy, ready to be asked. Make one with Compile. It is safe for
// concurrent use.
type Policy struct {
	// Name and UID are the object's.
	Name string
	UID  types.UID
	// Scope says what the limits count.
	Scope v1alpha1.PolicyScope
	// OpenAfter is for the scope Cluster: how long the API server may be away until
	// the policy holds no pod.
	OpenAfter time.Duration
	// GroupBy is the text of the expression, empty where there is one group.
	GroupBy string
	// Expression is what GroupBy says; nil where there is one group.
	Expression *Expression
	// NeedsNamespaces: only the labels of namespaces, beside their names, tell which
	// pods it is for.
	NeedsNamespaces bool

	terms     []term
	bypass    labels.Selector // nil: none
	limits    v1alpha1.PolicyLimits
	overrides []override
	invalid   []v1alpha1.InvalidField
}

// term is one alternative of a selector.
type term struct{ pod, namespace labels.Selector }

// Compile reads a policy. errs are what is wrong with it, as far as that makes it
// useless; the policy is nil then. An override that is wrong does not: it is left
// out, see [Policy.LimitsAt].
func Compile(policy *v1alpha1.StartPolicy) (p *Policy, errs field.ErrorList) {
	spec, path := policy.Spec, field.NewPath("spec")
	p = &Policy{
		Name: policy.Name, UID: policy.UID, Scope: spec.GetScope(),
		OpenAfter: spec.GetOpenAfter(), GroupBy: spec.GroupBy, limits: *spec.Limits.DeepCopy(),
	}
	read := func(at *field.Path, s *v1alpha1.LabelSelector) labels.Selector {
		selector, err := s.Selector()
		if err != nil {
			errs = append(errs, field.Invalid(at, "", err.Error()))
		}
		return selector
	}
	for i, t := range spec.Selector.Terms {
		at := path.Child("selector", "terms").Index(i)
		one := term{pod: read(at.Child("podSelector"), t.PodSelector), namespace: read(at.Child("namespaceSelector"), t.NamespaceSelector)}
		p.terms = append(p.terms, one)
		p.NeedsNamespaces = p.NeedsNamespaces || needsLabels(t.NamespaceSelector)
	}
	if spec.BypassSelector != nil {
		p.bypass = read(path.Child("bypassSelector"), spec.BypassSelector)
	}
	if spec.GroupBy != "" {
		var err error
		if p.Expression, err = NewExpression(spec.GroupBy); err != nil {
			errs = append(errs, field.Invalid(path.Child("groupBy"), spec.GroupBy, "must be a JSONPath: "+err.Error()))
		}
	}
	p.readOverrides(path.Child("temporaryOverrides"), spec.TemporaryOverrides)
	if len(errs) > 0 {
		return nil, errs
	}
	return p, nil
}

// needsLabels reports whether a selector asks for more than the name of a namespace.
func needsLabels(s *v1alpha1.LabelSelector) bool {
	if s == nil {
		return false
	}
	for key := range s.MatchLabels {
		if key != NamespaceName {
			return true
		}
	}
	return slices.ContainsFunc(s.MatchExpressions, func(r v1alpha1.LabelRequirement) bool { return r.Key != NamespaceName })
}

// Match is what a policy is for a pod.
type Match struct {
	// Group is the value that the pods of the group have in common; empty where the
	// policy has one group.
	Group string
	// Bypass: the pod counts, and is not held.
	Bypass bool
}

// Match reports whether the policy is for a pod, and how. namespace holds the labels
// of its namespace, of which the name is always known. The facts must have been
// taken with the policy's expression.
func (p *Policy) Match(pod Facts, namespace map[string]string) (m Match, ok bool) {
	selected := slices.ContainsFunc(p.terms, func(t term) bool {
		return t.pod.Matches(labels.Set(pod.Labels)) && t.namespace.Matches(labels.Set(namespace))
	})
	if !selected {
		return Match{}, false
	}
	if p.Expression != nil {
		if m.Group, ok = pod.Values[p.GroupBy]; !ok {
			return Match{}, false
		}
	}
	m.Bypass = p.bypass != nil && p.bypass.Matches(labels.Set(pod.Labels))
	return m, true
}
