package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Selector returns s in the form that matches labels. A nil or empty s selects everything, and one that
// is not valid selects nothing.
func (s *LabelSelector) Selector() labels.Selector {
	if s == nil {
		return labels.Everything()
	}
	same := metav1.LabelSelector{MatchLabels: make(map[string]string, len(s.MatchLabels))}
	for key, value := range s.MatchLabels {
		same.MatchLabels[key] = string(value)
	}
	for _, r := range s.MatchExpressions {
		one := metav1.LabelSelectorRequirement{Key: r.Key, Operator: r.Operator}
		for _, value := range r.Values {
			one.Values = append(one.Values, string(value))
		}
		same.MatchExpressions = append(same.MatchExpressions, one)
	}
	selector, err := metav1.LabelSelectorAsSelector(&same)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}
