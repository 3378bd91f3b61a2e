package crd

import (
	"cmp"
	"slices"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// first returns the config that is in force on a node, of those that select it: the one with the
// highest priority, and among equals the one whose name sorts first. It returns nil if there is none.
// ties are the sorted names of the others with the same priority.
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

// selects reports whether nodeLabels has every label of selector, with its value.
func selects(selector map[string]v1alpha1.LabelValue, nodeLabels map[string]string) bool {
	for key, want := range selector {
		if value, has := nodeLabels[key]; !has || value != string(want) {
			return false
		}
	}
	return true
}
