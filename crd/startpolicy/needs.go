package startpolicy

import "k8s.io/apimachinery/pkg/labels"

// Needs are the labels and expressions that policies name. The zero value has none. A copy must
// not be used while Add is called.
type Needs struct {
	labels      map[string]bool
	expressions map[string]*Expression
}

// Add adds what a policy names.
func (n *Needs) Add(p *Policy) {
	if n.labels == nil {
		*n = Needs{labels: map[string]bool{}, expressions: map[string]*Expression{}}
	}
	for _, t := range p.terms {
		n.addLabels(t.pod)
	}
	n.addLabels(p.bypass)
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

// Covers reports whether facts that were extracted for n are enough for other.
func (n Needs) Covers(other Needs) bool {
	return covers(n.labels, other.labels) && covers(n.expressions, other.expressions)
}

func covers[V any](all, some map[string]V) bool {
	for key := range some {
		if _, has := all[key]; !has {
			return false
		}
	}
	return true
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
