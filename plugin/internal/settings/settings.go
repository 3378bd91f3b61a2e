// Package settings turns a PacemakerConfig into what the limiter and the measurement of signals need.
package settings

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cores"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
)

// Of returns the limiter's settings for a configuration on a node whose pods can use these cores. The mode Disabled sets
// no limit, and neither does an invalid value.
func Of(spec v1alpha1.PacemakerConfigSpec, node cores.Cores) throttle.Settings {
	s := throttle.Settings{MaxWait: spec.GetMaxWait(), StartTimeout: spec.GetStartTimeout()}
	if spec.GetMode() == v1alpha1.ModeDisabled {
		return s
	}
	t := spec.ThrottleConfig
	s.NoFairness = spec.GetFairness() == v1alpha1.FairnessNone
	s.MaxConcurrent, s.MaxPulling = maxConcurrent(t.MaxConcurrent, node.Count), count(t.MaxPulling, 0)
	s.CountCores = t.MaxConcurrent != nil && t.MaxConcurrent.Cost == v1alpha1.CostCores
	if a := t.Adaptive; a != nil {
		s.Adaptive = &adaptive.Settings{
			TargetPressure: a.TargetPressure.Or(0), Min: count(a.Min, v1alpha1.DefaultAdaptiveMin), Max: count(a.Max, 0), Cores: node.Count,
		}
	}
	if r := t.RateLimit; r != nil {
		s.FillEvery, s.Burst = r.FillFactor.Or(0), count(r.Burst, v1alpha1.DefaultBurst)
	}
	s.Signals, s.MinUtilization = signalLimits(t, node.Node)
	// For both, the limiter has a default in place of 0.
	if s.MinUtilization == 0 {
		s.MinUtilization = -1 // it always counts
	}
	if s.NoProgressAfter = t.NoProgressAfter.Or(v1alpha1.DefaultNoProgressAfter); s.NoProgressAfter == 0 {
		s.NoProgressAfter = -1 // no slot is lent
	}
	return s
}

// count returns n, at least 1; if n is nil, it returns absent.
func count(n *int32, absent int) int {
	if n == nil {
		return absent
	}
	return max(1, int(*n))
}

// maxConcurrent returns how many pods may start at a time on a node with this number of cores, or 0 if any number may.
func maxConcurrent(m *v1alpha1.MaxConcurrent, cores int) int {
	if m == nil || m.Value == nil && m.PerCore == nil {
		return 0
	}
	if m.Value != nil {
		return count(m.Value, 0)
	}
	milli := m.PerCore.Milli()
	if milli == 0 {
		return 0
	}
	return max(1, int((int64(cores)*milli+999)/1000))
}

// signalLimits returns the limits on the node's signals, and the CPU use in percent above which the limit on CPU pressure
// counts.
func signalLimits(t v1alpha1.ThrottleConfig, cores int) (limits throttle.SignalLimits, minUtilization float64) {
	set := func(signal throttle.Signal, most, increment *v1alpha1.Decimal, times float64) {
		limits[signal] = throttle.SignalLimit{Max: times * most.Or(0), Increment: times * increment.Or(0)}
	}
	if l := t.CPU; l != nil {
		set(throttle.SignalCPU, l.MaxLoad, l.IncrementBy, 1)
	}
	if l := t.IO; l != nil {
		set(throttle.SignalIOWait, l.MaxLoad, l.IncrementBy, 1)
	}
	if l := t.LoadAvg; l != nil {
		times := 1
		if l.PerCore {
			times = max(1, cores)
		}
		set(throttle.SignalLoad, l.MaxLoad, l.IncrementBy, float64(times))
	}
	minUtilization = v1alpha1.DefaultMinUtilization
	if t.Pressure == nil {
		return limits, minUtilization
	}
	if p := t.Pressure.CPU; p != nil {
		set(throttle.SignalCPUPressure, p.Some, nil, 1)
		minUtilization = p.MinUtilization.Or(minUtilization)
	}
	if p := t.Pressure.Memory; p != nil {
		set(throttle.SignalMemoryPressure, p.Some, nil, 1)
		set(throttle.SignalMemoryFull, p.Full, nil, 1)
	}
	if p := t.Pressure.IO; p != nil {
		set(throttle.SignalIOPressure, p.Some, nil, 1)
		set(throttle.SignalIOFull, p.Full, nil, 1)
	}
	return limits, minUtilization
}

// PressureWindow returns the time over which pressure is measured.
func PressureWindow(t v1alpha1.ThrottleConfig) time.Duration {
	if t.Pressure == nil {
		return v1alpha1.DefaultPressureWindow
	}
	return t.Pressure.Window.Or(v1alpha1.DefaultPressureWindow)
}
