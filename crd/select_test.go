package crd

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

func config(name string, priority int32, selector map[string]v1alpha1.LabelValue) *v1alpha1.PacemakerConfig {
	return &v1alpha1.PacemakerConfig{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.PacemakerConfigSpec{Priority: priority, NodeSelector: selector},
	}
}

func TestOneOfTheConfigsThatSelectTheNodeIsInForce(t *testing.T) {
	t.Parallel()
	everywhere := config("everywhere", 0, nil)
	big := config("big", 10, map[string]v1alpha1.LabelValue{"size": "big"})
	bigSpot := config("big-spot", 5, map[string]v1alpha1.LabelValue{"size": "big", "spot": ""})
	alsoBig := config("also-big", 10, map[string]v1alpha1.LabelValue{"size": "big"})
	below := config("below", -1, map[string]v1alpha1.LabelValue{})

	for name, c := range map[string]struct {
		labels  map[string]string
		configs []*v1alpha1.PacemakerConfig
		want    string
		ties    []string
	}{
		"none at all":                  {nil, nil, "", nil},
		"none matches":                 {map[string]string{"size": "small"}, []*v1alpha1.PacemakerConfig{big}, "", nil},
		"a value must be equal":        {map[string]string{"size": ""}, []*v1alpha1.PacemakerConfig{big}, "", nil},
		"every label must be there":    {map[string]string{"size": "big"}, []*v1alpha1.PacemakerConfig{bigSpot}, "", nil},
		"an empty value matches empty": {map[string]string{"size": "big", "spot": ""}, []*v1alpha1.PacemakerConfig{bigSpot}, "big-spot", nil},
		"no selector matches all":      {nil, []*v1alpha1.PacemakerConfig{below, everywhere, big}, "everywhere", nil},
		"highest priority wins":        {map[string]string{"size": "big", "spot": ""}, []*v1alpha1.PacemakerConfig{everywhere, bigSpot, big}, "big", nil},
		"ties go by name":              {map[string]string{"size": "big"}, []*v1alpha1.PacemakerConfig{everywhere, big, alsoBig}, "also-big", []string{"big"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			configs := slices.SortedFunc(slices.Values(c.configs), func(a, b *v1alpha1.PacemakerConfig) int { return cmp.Compare(a.Name, b.Name) })
			chosen, ties := first(slices.DeleteFunc(configs, func(one *v1alpha1.PacemakerConfig) bool {
				return !selects(one.Spec.NodeSelector, c.labels)
			}))
			if c.want == "" {
				assert.Nil(t, chosen)
			} else if assert.NotNil(t, chosen) {
				assert.Equal(t, c.want, chosen.Name)
			}
			assert.Equal(t, c.ties, ties)
		})
	}
}
