package startpolicy

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Needs are the labels and the groupBys that policies name. The zero value has none. A copy must
// not be used while Add is called.
type Needs struct{ labels, groupBys sets.Set[string] }

// Add adds the label keys that p's pod selectors and bypassSelector use, and its groupBy.
func (n *Needs) Add(p *Policy) {
	if n.labels == nil {
		*n = Needs{labels: sets.Set[string]{}, groupBys: sets.Set[string]{}}
	}
	for _, t := range p.terms {
		n.addLabels(t.pod)
	}
	n.addLabels(p.bypass)
	if p.groupBy != "" {
		n.groupBys.Insert(p.groupBy)
	}
}

func (n *Needs) addLabels(selector labels.Selector) {
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		n.labels.Insert(r.Key())
	}
}

// Covers reports whether facts that were extracted for n are enough for other.
func (n Needs) Covers(other Needs) bool {
	return n.labels.IsSuperset(other.labels) && n.groupBys.IsSuperset(other.groupBys)
}

// LabelsOf takes all labels of a pod, and returns those that policies name, or nil if there are
// none.
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
