package plugin

import (
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
)

// SettingsOf returns what a configuration means for the limiter of a node with so
// many cores. With the mode Off, no limit is left.
func SettingsOf(spec v1alpha1.PacemakerConfigSpec, cores int) throttle.Settings {
	s := throttle.Settings{MaxWait: spec.GetMaxWait(), StartTimeout: spec.GetStartTimeout()}
	if spec.GetMode() == v1alpha1.ModeOff {
		return s
	}
	s.NoFairness = spec.GetFairness() == v1alpha1.FairnessNone
	t := spec.ThrottleConfig
	s.MaxConcurrent, _ = t.ConcurrencyLimit(cores)
	if r, on := t.AdaptiveRange(); on {
		s.Adaptive = &adaptive.Settings{TargetPressure: r.TargetPressure, Min: r.Min, Max: r.Max, Cores: cores}
	}
	s.FillEvery, s.Burst, _ = t.StartRate()
	p := t.PressureLimits()
	s.Signals = throttle.SignalLimits{
		throttle.SignalCPU:            throttle.SignalLimit(t.CPUSignal()),
		throttle.SignalIOWait:         throttle.SignalLimit(t.IOSignal()),
		throttle.SignalLoad:           throttle.SignalLimit(t.LoadSignal(cores)),
		throttle.SignalCPUPressure:    {Max: p.CPUSome},
		throttle.SignalMemoryPressure: {Max: p.MemorySome},
		throttle.SignalMemoryFull:     {Max: p.MemoryFull},
		throttle.SignalIOPressure:     {Max: p.IOSome},
		throttle.SignalIOFull:         {Max: p.IOFull},
	}
	if s.MinUtilization = p.MinUtilization; s.MinUtilization == 0 {
		s.MinUtilization = -1 // it always counts; 0 would mean the default
	}
	s.MaxPulling = t.PullingLimit()
	after, lends := t.LoanAfter()
	if !lends {
		after = -1
	}
	s.NoProgressAfter = after
	return s
}
