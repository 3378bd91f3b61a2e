package startpolicy

import "k8s.io/apimachinery/pkg/labels"

// Needs are the labels and the groupBys that policies name. The zero value has none. A copy must
// not be used while Add is called.
type Needs struct{ labels, groupBys map[string]bool }

// Add adds what a policy names.
func (n *Needs) Add(p *Policy) {
	if n.labels == nil {
		*n = Needs{labels: map[string]bool{}, groupBys: map[string]bool{}}
	}
	for _, t := range p.terms {
		n.addLabels(t.pod)
	}
	n.addLabels(p.bypass)
	if p.groupBy != "" {
		n.groupBys[p.groupBy] = true
	}
}

func (n *Needs) addLabels(selector labels.Selector) {
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		n.labels[r.Key()] = true
	}
}

// Covers reports whether facts that were extracted for n are enough for other.
func (n Needs) Covers(other Needs) bool {
	return covers(n.labels, other.labels) && covers(n.groupBys, other.groupBys)
}

func covers(all, some map[string]bool) bool {
	for key := range some {
		if !all[key] {
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
