package crd

import (
	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// Choose returns the config that a new [Source] would put in force, from all PacemakerConfigs in the API server, for
// the daemon of the instance on a node with these labels. It returns nil if none selects the node. It does not block.
func Choose(configs []unstructured.Unstructured, instance string, nodeLabels map[string]string) *v1alpha1.PacemakerConfig {
	chosen, _ := first(selecting(configKind, configs, instance, nodeLabels))
	return chosen
}

// ChoosePolicies returns all StartPolicies that a new [Source] would put in force.
func ChoosePolicies(policies []unstructured.Unstructured, instance string, nodeLabels map[string]string) []*v1alpha1.StartPolicy {
	return selecting(policyKind, policies, instance, nodeLabels)
}

// selecting returns the valid objects of a kind that select the node for the instance, sorted by name.
func selecting[T any](k kind[T], objects []unstructured.Unstructured, instance string, nodeLabels map[string]string) []*T {
	f := newFollower(k, SourceOptions{Instance: instance, OnPanic: func(string, any, logrus.Fields) {}}, "", nil, nil)
	for i := range objects {
		f.store(f.readVersion(&objects[i]))
	}
	return f.selecting(nodeLabels)
}

// first returns the config that is in force on a node, of those that select it, which are sorted by name: the first with the
// highest priority. It returns nil if there is none. ties are the names of the others with the same priority, sorted.
func first(matching []*v1alpha1.PacemakerConfig) (chosen *v1alpha1.PacemakerConfig, ties []string) {
	for _, c := range matching {
		switch {
		case chosen == nil || c.Spec.Priority > chosen.Spec.Priority:
			chosen, ties = c, nil
		case c.Spec.Priority == chosen.Spec.Priority:
			ties = append(ties, c.Name)
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
