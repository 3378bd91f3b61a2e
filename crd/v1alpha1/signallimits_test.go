package v1alpha1

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func decimal(s string) *Decimal { return new(Decimal(intstr.FromString(s))) }

func whole(n int32) *Decimal { return new(Decimal(intstr.FromInt32(n))) }

func TestNoLimitHoldsNothing(t *testing.T) {
	t.Parallel()
	var none ThrottleConfig
	assert.Zero(t, none.CPUSignal())
	assert.Zero(t, none.IOSignal())
	assert.Zero(t, none.LoadSignal(8))
	assert.Equal(t, PressureLimits{MinUtilization: 70}, none.PressureLimits())
	assert.Equal(t, 2*time.Second, none.PressureWindow())
	assert.Zero(t, none.PullingLimit())
	_, on := none.AdaptiveRange()
	assert.False(t, on)
	after, lends := none.LoanAfter()
	assert.Equal(t, 10*time.Second, after)
	assert.True(t, lends)
}

func TestSignalLimits(t *testing.T) {
	t.Parallel()
	c := ThrottleConfig{
		CPU:     &CPULimit{MaxLoad: decimal("85.5"), IncrementBy: whole(10)},
		IO:      &IOLimit{MaxLoad: whole(20)},
		LoadAvg: &LoadAvgLimit{MaxLoad: decimal("1.5"), IncrementBy: decimal("0.25")},
	}
	assert.Equal(t, SignalLimit{Max: 85.5, Increment: 10}, c.CPUSignal())
	assert.Equal(t, SignalLimit{Max: 20}, c.IOSignal())
	assert.Equal(t, SignalLimit{Max: 1.5, Increment: 0.25}, c.LoadSignal(8))
	c.LoadAvg.PerCore = true
	assert.Equal(t, SignalLimit{Max: 12, Increment: 2}, c.LoadSignal(8))
	assert.Equal(t, SignalLimit{Max: 1.5, Increment: 0.25}, c.LoadSignal(0), "a node has a core")

	c.CPU = &CPULimit{IncrementBy: whole(10)}
	assert.Zero(t, c.CPUSignal(), "what no rule lets through holds nothing")
}

func TestPressureLimits(t *testing.T) {
	t.Parallel()
	c := ThrottleConfig{Pressure: &Pressure{
		CPU:    &CPUPressure{Some: whole(60), MinUtilization: whole(0)},
		Memory: &StallPressure{Full: decimal("7.5")},
		IO:     &StallPressure{Some: whole(40), Full: whole(25)},
		Window: new(Duration("3s")),
	}}
	assert.Equal(t, PressureLimits{CPUSome: 60, MemoryFull: 7.5, IOSome: 40, IOFull: 25}, c.PressureLimits())
	assert.Equal(t, 3*time.Second, c.PressureWindow())

	c.Pressure.CPU.MinUtilization = nil
	assert.InDelta(t, 70, c.PressureLimits().MinUtilization, 0)
}

func TestOtherLimits(t *testing.T) {
	t.Parallel()
	c := ThrottleConfig{Adaptive: &Adaptive{}, MaxPulling: new(int32(3)), NoProgressAfter: new(Duration("0s"))}
	r, on := c.AdaptiveRange()
	assert.True(t, on)
	assert.Equal(t, AdaptiveRange{Min: 1}, r)
	assert.Equal(t, 3, c.PullingLimit())
	_, lends := c.LoanAfter()
	assert.False(t, lends)

	c.Adaptive = &Adaptive{TargetPressure: decimal("33.5"), Min: new(int32(2)), Max: new(int32(9))}
	r, _ = c.AdaptiveRange()
	assert.Equal(t, AdaptiveRange{TargetPressure: 33.5, Min: 2, Max: 9}, r)
}

func TestMode(t *testing.T) {
	t.Parallel()
	var spec PacemakerConfigSpec
	assert.Equal(t, ModeEnforce, spec.GetMode())
	assert.True(t, spec.PacesRestarts())
	spec.Mode, spec.Restarts.Pace = ModeShadow, new(false)
	assert.Equal(t, ModeShadow, spec.GetMode())
	assert.False(t, spec.PacesRestarts())
}

func TestDecimalIsExact(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		`80`: 80_000, `"80"`: 80_000, `"0.5"`: 500, `"62.125"`: 62_125, `"0"`: 0, `0`: 0, `"999999.999"`: 999_999_999,
		`2147483647`: 2_147_483_647_000,
	} {
		var d Decimal
		require.NoError(t, json.Unmarshal([]byte(text), &d))
		milli, err := d.Milli()
		require.NoError(t, err, text)
		assert.Equal(t, want, milli, text)
		written, err := json.Marshal(d)
		require.NoError(t, err)
		assert.Equal(t, text, string(written), "as the user wrote it")
	}
	for _, text := range []string{`""`, `"."`, `".5"`, `"5."`, `"-1"`, `-1`, `"+1"`, `"1e2"`, `"NaN"`, `"Inf"`, `"0x10"`, `"1_0"`, `" 1"`, `"1\n"`, `"1.0000"`, `"1000000"`, `"80%"`} {
		var d Decimal
		require.NoError(t, json.Unmarshal([]byte(text), &d))
		_, err := d.Milli()
		assert.Error(t, err, text)
	}
}
