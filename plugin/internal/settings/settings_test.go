package settings

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cores"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
)

func everything(t *testing.T) v1alpha1.PacemakerConfigSpec {
	t.Helper()
	config, err := crd.Load("../../../crd/testdata/valid/everything.yaml")
	require.NoError(t, err)
	return config.Config.Spec
}

func TestSettingsHaveEveryLimit(t *testing.T) {
	t.Parallel()
	s := Of(everything(t), cores.Of(4))
	assert.Equal(t, 6, s.MaxConcurrent)
	assert.True(t, s.CountCores)
	assert.Equal(t, &adaptive.Settings{TargetPressure: 33.5, Min: 2, Max: 12, Cores: 4}, s.Adaptive)
	assert.Equal(t, 500*time.Millisecond, s.FillEvery)
	assert.Equal(t, 3, s.Burst)
	assert.Equal(t, throttle.SignalLimits{
		throttle.SignalCPU:         {Max: 85.5, Increment: 10},
		throttle.SignalIOWait:      {Max: 20, Increment: 2.5},
		throttle.SignalLoad:        {Max: 6, Increment: 1},
		throttle.SignalCPUPressure: {Max: 60}, throttle.SignalMemoryPressure: {Max: 20}, throttle.SignalMemoryFull: {Max: 7.5},
		throttle.SignalIOPressure: {Max: 40}, throttle.SignalIOFull: {Max: 25},
	}, s.Signals)
	assert.InDelta(t, 50, s.MinUtilization, 0)
	assert.Equal(t, 5, s.MaxPulling)
	assert.True(t, s.NoFairness)
	assert.Equal(t, 20*time.Second, s.NoProgressAfter)
	assert.Equal(t, 3*time.Second, PressureWindow(everything(t).ThrottleConfig))

	assert.Equal(t, "as many at a time as are expected to keep 6 cores busy, as many at a time as the node can handle (2 to 12), one every 500ms (3 at once after a quiet time), 5 pulling images at a time, "+
		"cpu below 85.5% (each start adds 10%), iowait below 20% (each start adds 2.5%), load below 6 (each start adds 1), "+
		"pressure.cpu.some below 60% (where cpu is above 50%), pressure.memory.some below 20%, pressure.memory.full below 7.5%, "+
		"pressure.io.some below 40%, pressure.io.full below 25%; a pod may start over the limit after 15m, a start counts for 1m30s at most",
		admin.LimitsText(s))
}

func TestOffLeavesNoLimit(t *testing.T) {
	t.Parallel()
	spec := everything(t)
	spec.Mode = v1alpha1.ModeDisabled
	assert.Equal(t, throttle.Settings{MaxWait: spec.GetMaxWait(), StartTimeout: spec.GetStartTimeout()}, Of(spec, cores.Of(4)))
}

// A 0 in a configuration must not become the limiter's default.
func TestZerosKeepTheirMeaning(t *testing.T) {
	t.Parallel()
	var spec v1alpha1.PacemakerConfigSpec
	s := Of(spec, cores.Of(4))
	assert.Equal(t, 10*time.Second, s.NoProgressAfter)
	assert.InDelta(t, 70, s.MinUtilization, 0)
	assert.Equal(t, admin.NoLimits, admin.LimitsText(s))
	assert.Nil(t, s.Adaptive)
	assert.Equal(t, 2*time.Second, PressureWindow(spec.ThrottleConfig))

	config, err := crd.Load("../../../crd/testdata/valid/lowest.yaml")
	require.NoError(t, err)
	s = Of(config.Config.Spec, cores.Of(4))
	assert.Negative(t, s.NoProgressAfter)
	assert.Negative(t, s.MinUtilization)
	assert.NotContains(t, admin.LimitsText(s), "where cpu is above")
}

func decimal(text string) *v1alpha1.Decimal { return new(v1alpha1.Decimal(intstr.FromString(text))) }

func TestMaxConcurrentPerCore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		most  v1alpha1.MaxConcurrent
		cores int
		want  int
	}{
		"value":                 {v1alpha1.MaxConcurrent{Value: new(int32(3))}, 64, 3},
		"value wins":            {v1alpha1.MaxConcurrent{Value: new(int32(1)), PerCore: decimal("2")}, 8, 1},
		"whole per core":        {v1alpha1.MaxConcurrent{PerCore: new(v1alpha1.Decimal(intstr.FromInt32(2)))}, 8, 16},
		"fraction, rounded up":  {v1alpha1.MaxConcurrent{PerCore: decimal("0.75")}, 2, 2},
		"at least one":          {v1alpha1.MaxConcurrent{PerCore: decimal("0.001")}, 2, 1},
		"exact in decimal":      {v1alpha1.MaxConcurrent{PerCore: decimal("0.29")}, 100, 29},
		"places are filled up":  {v1alpha1.MaxConcurrent{PerCore: decimal("1.05")}, 100, 105},
		"most":                  {v1alpha1.MaxConcurrent{PerCore: decimal("100.000")}, 1024, 102400},
		"value never below one": {v1alpha1.MaxConcurrent{Value: new(int32(0))}, 2, 1},
		"no decimal":            {v1alpha1.MaxConcurrent{PerCore: decimal("many")}, 2, 0},
		"neither":               {v1alpha1.MaxConcurrent{}, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := v1alpha1.PacemakerConfigSpec{ThrottleConfig: v1alpha1.ThrottleConfig{MaxConcurrent: &c.most}}
			assert.Equal(t, c.want, Of(spec, cores.Of(c.cores)).MaxConcurrent)
		})
	}
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	of := func(r v1alpha1.RateLimit) (time.Duration, int) {
		s := Of(v1alpha1.PacemakerConfigSpec{ThrottleConfig: v1alpha1.ThrottleConfig{RateLimit: &r}}, cores.Of(4))
		return s.FillEvery, s.Burst
	}
	every, burst := of(v1alpha1.RateLimit{FillFactor: "1s500ms"})
	assert.Equal(t, 1500*time.Millisecond, every)
	assert.Equal(t, 1, burst)
	_, burst = of(v1alpha1.RateLimit{FillFactor: "1s", Burst: new(int32(7))})
	assert.Equal(t, 7, burst)
	for _, unusable := range []v1alpha1.Duration{"", "0s", "-1s", "often"} {
		every, _ = of(v1alpha1.RateLimit{FillFactor: unusable})
		assert.Zero(t, every, unusable)
	}
}

func TestSignalLimits(t *testing.T) {
	t.Parallel()
	c := v1alpha1.ThrottleConfig{
		IO:       &v1alpha1.LoadLimit{MaxLoad: decimal("20")},
		LoadAvg:  &v1alpha1.LoadAvgLimit{MaxLoad: decimal("1.5"), IncrementBy: decimal("0.25"), PerCore: true},
		Pressure: &v1alpha1.Pressure{CPU: &v1alpha1.CPUPressure{Some: decimal("60")}, Memory: &v1alpha1.StallPressure{Full: decimal("7.5")}},
		Adaptive: &v1alpha1.Adaptive{},
	}
	s := Of(v1alpha1.PacemakerConfigSpec{ThrottleConfig: c}, cores.Of(8))
	assert.Equal(t, throttle.SignalLimits{
		throttle.SignalIOWait: {Max: 20}, throttle.SignalLoad: {Max: 12, Increment: 2},
		throttle.SignalCPUPressure: {Max: 60}, throttle.SignalMemoryFull: {Max: 7.5},
	}, s.Signals)
	assert.InDelta(t, 70, s.MinUtilization, 0)
	assert.Equal(t, &adaptive.Settings{Min: 1, Cores: 8}, s.Adaptive)
	s = Of(v1alpha1.PacemakerConfigSpec{ThrottleConfig: c}, cores.Of(0))
	assert.Equal(t, throttle.SignalLimit{Max: 1.5, Increment: 0.25}, s.Signals[throttle.SignalLoad], "a node has at least one core")

	c = v1alpha1.ThrottleConfig{CPU: &v1alpha1.LoadLimit{IncrementBy: decimal("10")}}
	s = Of(v1alpha1.PacemakerConfigSpec{ThrottleConfig: c}, cores.Of(8))
	assert.Zero(t, s.Signals[throttle.SignalCPU].Max, "a value that validation refuses sets no limit")
	assert.False(t, s.Watches(throttle.SignalCPU))
	assert.Equal(t, admin.NoLimits, admin.LimitsText(s))
}

// Every valid configuration gives usable settings.
func FuzzSettings(f *testing.F) {
	paths, err := filepath.Glob("../../../crd/testdata/valid/*.yaml")
	require.NoError(f, err)
	require.NotEmpty(f, paths)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		found, err := crd.Parse(data)
		if err != nil || found.Config == nil || found.Config.Spec.GetMode() == v1alpha1.ModeDisabled {
			return
		}
		set := found.Config.Spec.ThrottleConfig
		s := Of(found.Config.Spec, cores.Of(4))
		assert.Equal(t, set.MaxConcurrent != nil, s.MaxConcurrent > 0)
		assert.Equal(t, set.RateLimit != nil, s.FillEvery > 0)
		assert.Equal(t, set.RateLimit != nil, s.Burst > 0)
		assert.Equal(t, set.Adaptive != nil, s.Adaptive != nil)
		if a := s.Adaptive; a != nil {
			assert.True(t, a.Min >= 1 && (a.Max == 0 || a.Max >= a.Min), a)
		}
		for signal, l := range s.Signals {
			assert.True(t, l.Max >= 0 && l.Increment >= 0 && l.Max <= 400_000, signal)
		}
		assert.LessOrEqual(t, s.Signals[throttle.SignalCPUPressure].Max, 100.0)
		assert.True(t, s.MinUtilization == -1 || s.MinUtilization > 0, s.MinUtilization)
		assert.Positive(t, PressureWindow(set))
	})
}
