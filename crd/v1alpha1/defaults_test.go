package v1alpha1

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestEmptySpecHasTheDefaults(t *testing.T) {
	t.Parallel()
	var spec PacemakerConfigSpec
	assert.Equal(t, 5*time.Minute, spec.GetStartTimeout())
	assert.Equal(t, 10*time.Minute, spec.GetMaxWait())
	assert.Equal(t, 5*time.Second, spec.GetSettleTime())
	assert.True(t, spec.Exemptions.ExemptsNamespace("kube-system"))
	assert.False(t, spec.Exemptions.ExemptsNamespace("default"))
	_, limited := spec.ThrottleConfig.ConcurrencyLimit(8)
	assert.False(t, limited)
	_, _, limited = spec.ThrottleConfig.StartRate()
	assert.False(t, limited)
}

func TestConcurrencyLimit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		max   MaxConcurrent
		cores int
		want  int
	}{
		"value":                 {MaxConcurrent{Value: new(int32(3))}, 64, 3},
		"value wins":            {MaxConcurrent{Value: new(int32(1)), PerCore: new(Decimal(intstr.FromString("2")))}, 8, 1},
		"whole per core":        {MaxConcurrent{PerCore: new(Decimal(intstr.FromInt32(2)))}, 8, 16},
		"fraction, rounded":     {MaxConcurrent{PerCore: new(Decimal(intstr.FromString("0.5")))}, 7, 3},
		"at least one":          {MaxConcurrent{PerCore: new(Decimal(intstr.FromString("0.001")))}, 2, 1},
		"exact in decimal":      {MaxConcurrent{PerCore: new(Decimal(intstr.FromString("0.29")))}, 100, 29},
		"places are filled up":  {MaxConcurrent{PerCore: new(Decimal(intstr.FromString("1.05")))}, 100, 105},
		"most":                  {MaxConcurrent{PerCore: new(Decimal(intstr.FromString("100.000")))}, 1024, 102400},
		"no cores known to OS":  {MaxConcurrent{PerCore: new(Decimal(intstr.FromInt32(2)))}, 0, 1},
		"value never below one": {MaxConcurrent{Value: new(int32(0))}, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limit, limited := ThrottleConfig{MaxConcurrent: &c.max}.ConcurrencyLimit(c.cores)
			assert.True(t, limited)
			assert.Equal(t, c.want, limit)
		})
	}
}

func TestStartRate(t *testing.T) {
	t.Parallel()
	every, burst, limited := ThrottleConfig{RateLimit: &RateLimit{FillFactor: "1s500ms"}}.StartRate()
	assert.True(t, limited)
	assert.Equal(t, 1500*time.Millisecond, every)
	assert.Equal(t, 1, burst)

	_, burst, _ = ThrottleConfig{RateLimit: &RateLimit{FillFactor: "1s", Burst: new(int32(7))}}.StartRate()
	assert.Equal(t, 7, burst)

	for _, unusable := range []Duration{"", "0s", "-1s", "often"} {
		_, _, limited = ThrottleConfig{RateLimit: &RateLimit{FillFactor: unusable}}.StartRate()
		assert.False(t, limited, unusable)
	}
}

func TestDurationIsAsLongAsItSays(t *testing.T) {
	t.Parallel()
	for text, want := range map[Duration]time.Duration{
		"0s": 0, "1ms": time.Millisecond, "90s": 90 * time.Second, "1h2m3s4ms": time.Hour + 2*time.Minute + 3*time.Second + 4*time.Millisecond,
		"99999h99999h99999h99999h": 4 * 99999 * time.Hour,
	} {
		got, err := text.Parse()
		require.NoError(t, err)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []Duration{"", "1", "1d", "1.5s", "-1s", "+1s", "1us", " 1s", "1s\n", "100000s", "1s1s1s1s1s", "∞"} {
		_, err := text.Parse()
		assert.Error(t, err, text)
	}
}

// An empty list of namespaces exempts none, an absent one kube-system: writing
// an object must not turn one into the other.
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

func TestSchemeKnowsTheTypes(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	require.NoError(t, AddToScheme(scheme))
	assert.True(t, scheme.Recognizes(GroupVersion.WithKind(Kind)))
	assert.True(t, scheme.Recognizes(GroupVersion.WithKind(Kind+"List")))
}
