package crd

import (
	"cmp"
	"slices"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// first returns which of configs that all select a node is in force there: the one with the highest
// priority, and among equals the one whose name comes first; nil: there is none. ties are
// the names of the others that have the same priority as the chosen one, sorted.
func first(matching []*v1alpha1.PacemakerConfig) (chosen *v1alpha1.PacemakerConfig, ties []string) {
	if len(matching) == 0 {
		return nil, nil
	}
	matching = slices.Clone(matching)
	slices.SortStableFunc(matching, func(a, b *v1alpha1.PacemakerConfig) int {
		return cmp.Or(cmp.Compare(b.Spec.Priority, a.Spec.Priority), cmp.Compare(a.Name, b.Name))
	})
	chosen = matching[0]
	for _, other := range matching[1:] {
		if other.Spec.Priority == chosen.Spec.Priority {
			ties = append(ties, other.Name)
		}
	}
	return chosen, ties
}

// selects reports whether a node with these labels has all that selector names.
func selects(selector map[string]v1alpha1.LabelValue, nodeLabels map[string]string) bool {
	for key, want := range selector {
		if value, has := nodeLabels[key]; !has || value != string(want) {
			return false
		}
	}
	return true
}
