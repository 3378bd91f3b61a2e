package crd

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

// It is the choice of a Source for an instance and the labels of a node.
func TestChoose(t *testing.T) {
	t.Parallel()
	object := func(name string, priority int64, instance string, selector map[string]any) unstructured.Unstructured {
		u := testObject(name, 1, 1, selector)
		require.NoError(t, unstructured.SetNestedField(u.Object, priority, "spec", "priority"))
		if instance != "" {
			require.NoError(t, unstructured.SetNestedField(u.Object, instance, "spec", "instance"))
		}
		return *u
	}
	invalid := object("invalid", 9, "", nil)
	require.NoError(t, unstructured.SetNestedField(invalid.Object, "many", "spec", "throttleConfig", "maxConcurrent", "value"))
	all := []unstructured.Unstructured{
		invalid, object("z", 1, "", nil), object("a", 1, "", nil), object("big", 5, "", map[string]any{"size": "big"}), object("canary", 0, "canary", nil),
	}
	for _, c := range []struct{ instance, size, want string }{{"", "big", "big"}, {"", "small", "a"}, {"canary", "big", "canary"}, {"other", "big", ""}} {
		var name string
		if chosen := Choose(all, c.instance, map[string]string{"size": c.size}); chosen != nil {
			name = chosen.Name
		}
		assert.Equal(t, c.want, name, "%+v", c)
	}
	assert.Nil(t, Choose(nil, "", nil))
}
