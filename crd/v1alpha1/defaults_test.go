package v1alpha1

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestEmptySpecHasTheDefaults(t *testing.T) {
	t.Parallel()
	var spec PacemakerConfigSpec
	assert.Equal(t, 5*time.Minute, spec.GetStartTimeout())
	assert.Equal(t, 4*time.Minute, spec.GetMaxWait())
	assert.Equal(t, 5*time.Second, spec.GetSettleTime())
	assert.True(t, spec.Exemptions.ExemptsNamespace("kube-system"))
	assert.False(t, spec.Exemptions.ExemptsNamespace("default"))
}

func TestDurationIsAsLongAsItSays(t *testing.T) {
	t.Parallel()
	for text, want := range map[Duration]time.Duration{
		"0s": 0, "1ms": time.Millisecond, "90s": 90 * time.Second, "1h2m3s4ms": time.Hour + 2*time.Minute + 3*time.Second + 4*time.Millisecond,
		"99999h99999h99999h99999h": 4 * 99999 * time.Hour,
	} {
		assert.Equal(t, want, text.Or(time.Minute), text)
	}
	for _, text := range []Duration{"", "1", "1d", " 1s", "1s\n", "∞"} {
		assert.Equal(t, time.Minute, text.Or(time.Minute), text)
	}
	assert.Equal(t, time.Minute, (*Duration)(nil).Or(time.Minute))
}

// An empty list of namespaces exempts none, an absent one exempts kube-system. Writing an object must not turn one
// into the other.
func TestAnEmptyNamespaceListStaysEmpty(t *testing.T) {
	t.Parallel()
	config := PacemakerConfig{Spec: PacemakerConfigSpec{Exemptions: Exemptions{Namespaces: []string{}}}}
	data, err := json.Marshal(config)
	require.NoError(t, err)
	assert.Contains(t, string(data), `"namespaces":[]`)
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&config)
	require.NoError(t, err)

	var fromJSON, fromObject PacemakerConfig
	require.NoError(t, json.Unmarshal(data, &fromJSON))
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object, &fromObject))
	for _, c := range []*PacemakerConfig{&fromJSON, &fromObject, config.DeepCopy()} {
		assert.False(t, c.Spec.Exemptions.ExemptsNamespace("kube-system"))
	}
}
