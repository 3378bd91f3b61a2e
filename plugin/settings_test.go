package plugin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
)

func everything(t *testing.T) v1alpha1.PacemakerConfigSpec {
	t.Helper()
	config, err := crd.Load("../crd/testdata/valid/everything.yaml")
	require.NoError(t, err)
	return config.Config.Spec
}

func TestSettingsHaveEveryLimit(t *testing.T) {
	t.Parallel()
	s := SettingsOf(everything(t), 4)
	assert.Equal(t, 6, s.MaxConcurrent)
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

	assert.Equal(t, "6 at a time, as many at a time as the node bears (2 to 12), one every 500ms (3 at once after a quiet time), 5 pulling images at a time, "+
		"cpu below 85.5% (each start adds 10%), iowait below 20% (each start adds 2.5%), load below 6 (each start adds 1), "+
		"pressure.cpu.some below 60% (where cpu is above 50%), pressure.memory.some below 20%, pressure.memory.full below 7.5%, "+
		"pressure.io.some below 40%, pressure.io.full below 25%; a pod waits 15m at most, a start counts for 1m30s at most",
		admin.LimitsText(s))
}

func TestOffLeavesNoLimit(t *testing.T) {
	t.Parallel()
	spec := everything(t)
	spec.Mode = v1alpha1.ModeOff
	assert.Equal(t, throttle.Settings{MaxWait: spec.GetMaxWait(), StartTimeout: spec.GetStartTimeout()}, SettingsOf(spec, 4))
}

// What is 0 in a configuration must not become the limiter's default.
func TestZerosKeepTheirMeaning(t *testing.T) {
	t.Parallel()
	var spec v1alpha1.PacemakerConfigSpec
	s := SettingsOf(spec, 4)
	assert.Equal(t, 10*time.Second, s.NoProgressAfter)
	assert.InDelta(t, 70, s.MinUtilization, 0)
	assert.Equal(t, admin.NoLimits, admin.LimitsText(s))

	config, err := crd.Load("../crd/testdata/valid/lowest.yaml")
	require.NoError(t, err)
	s = SettingsOf(config.Config.Spec, 4)
	assert.Negative(t, s.NoProgressAfter)
	assert.Negative(t, s.MinUtilization)
	assert.NotContains(t, admin.LimitsText(s), "where cpu is above")
}
