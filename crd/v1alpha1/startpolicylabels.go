package v1alpha1

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Selector returns s in the form that matches labels. A nil or empty s selects everything. An error
// names the part of s that is not valid.
func (s *LabelSelector) Selector() (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	same := metav1.LabelSelector{MatchLabels: make(map[string]string, len(s.MatchLabels))}
	for key, value := range s.MatchLabels {
		same.MatchLabels[key] = string(value)
	}
	for _, r := range s.MatchExpressions {
		values := make([]string, 0, len(r.Values))
		for _, v := range r.Values {
			values = append(values, string(v))
		}
		same.MatchExpressions = append(same.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: r.Key, Operator: metav1.LabelSelectorOperator(r.Operator), Values: values,
		})
	}
	selector, err := metav1.LabelSelectorAsSelector(&same)
	if err != nil {
		return nil, fmt.Errorf("no selector: %w", err)
	}
	return selector, nil
}
