package startpolicy

import (
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// Needs are the labels, resources and expressions that policies name. They always include the
// resources cpu and memory, which reports show. The zero value has only these. A copy must not
// be used while Add is called.
type Needs struct {
	labels, requests map[string]bool
	expressions      map[string]*Expression
}

// Add adds what a policy and its overrides name.
func (n *Needs) Add(p *Policy) {
	if n.labels == nil {
		*n = Needs{labels: map[string]bool{}, requests: map[string]bool{}, expressions: map[string]*Expression{}}
	}
	for _, t := range p.terms {
		n.addLabels(t.pod)
	}
	n.addLabels(p.bypass)
	n.addRequests(&p.limits)
	for i := range p.overrides {
		n.addRequests(&p.overrides[i].limits)
	}
	if p.Expression != nil {
		n.expressions[p.GroupBy] = p.Expression
	}
}

func (n *Needs) addLabels(selector labels.Selector) {
	if selector == nil {
		return
	}
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		n.labels[r.Key()] = true
	}
}

func (n *Needs) addRequests(limits *v1alpha1.PolicyLimits) {
	for _, bound := range []*v1alpha1.PodBound{limits.Starting, limits.Running} {
		if bound != nil {
			for name := range bound.Requests {
				n.requests[name] = true
			}
		}
	}
}

// Covers reports whether facts that were extracted for n are enough for other.
func (n Needs) Covers(other Needs) bool {
	return covers(n.labels, other.labels) && covers(n.requests, other.requests) && covers(n.expressions, other.expressions)
}

func covers[V any](all, some map[string]V) bool {
	for key := range some {
		if _, has := all[key]; !has {
			return false
		}
	}
	return true
}

// needsRequest reports whether n includes a resource.
func (n Needs) needsRequest(name string) bool {
	return n.requests[name] || name == "cpu" || name == "memory"
}

// LabelsOf returns the labels of all that policies name, or nil if there is none.
func (n Needs) LabelsOf(all map[string]string) (named map[string]string) {
	for key := range n.labels {
		if value, ok := all[key]; ok {
			if named == nil {
				named = make(map[string]string, len(n.labels))
			}
			named[key] = value
		}
	}
	return named
}
