package admin

import (
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// Limits are the limits in force. What is absent, or 0 where it is always there,
// is not limited.
type Limits struct {
	// MaxConcurrent is the number of starts at a time.
	MaxConcurrent int `json:"maxConcurrent"`
	// Adaptive: a number of starts at a time is found out from the signals too; the
	// smaller one counts.
	Adaptive *AdaptiveLimit `json:"adaptive,omitempty"`
	// FillEverySeconds is the time in which one start becomes available; Burst is
	// how many can be saved up.
	FillEverySeconds Seconds `json:"fillEverySeconds"`
	Burst            int     `json:"burst,omitempty"`
	// MaxPulling is the number of pods between sandbox and first container.
	MaxPulling int `json:"maxPulling,omitempty"`
	// Signals are the signals of the node that hold starts, in the order of
	// [throttle.Signal].
	Signals []SignalLimit `json:"signals,omitempty"`
	// MinUtilization is the CPU use in percent above which CPU pressure counts;
	// absent where no limit asks for CPU pressure, or where it always counts.
	MinUtilization float64 `json:"minUtilization,omitempty"`
	// NoProgressAfterSeconds is how long no start may make progress before a slot
	// is lent; absent: none ever is.
	NoProgressAfterSeconds Seconds `json:"noProgressAfterSeconds,omitempty"`
	// MaxWaitSeconds is how long a pod waits before it starts over the limit,
	// StartTimeoutSeconds how long a start may hold its slot.
	MaxWaitSeconds      Seconds `json:"maxWaitSeconds"`
	StartTimeoutSeconds Seconds `json:"startTimeoutSeconds"`
}

// AdaptiveLimit bounds the number of starts at a time that is found out.
type AdaptiveLimit struct {
	Min int `json:"min"`
	// Max is absent where there is no bound.
	Max int `json:"max,omitempty"`
	// TargetPressure is in percent; absent: the default.
	TargetPressure float64 `json:"targetPressure,omitempty"`
}

// SignalLimit is the limit of one signal of the node.
type SignalLimit struct {
	// Name is what [throttle.Signal] calls it.
	Name string `json:"name"`
	// Max is where it begins to hold starts, Increment what each start adds until
	// it was measured anew; both in the unit of the signal.
	Max       float64 `json:"max"`
	Increment float64 `json:"increment,omitempty"`
}

// NewLimits returns the limits that the settings mean.
func NewLimits(s throttle.Settings) Limits {
	s = s.WithDefaults()
	l := Limits{
		MaxConcurrent:       max(0, s.MaxConcurrent),
		MaxPulling:          max(0, s.MaxPulling),
		Signals:             signalLimits(s),
		MaxWaitSeconds:      seconds(s.MaxWait),
		StartTimeoutSeconds: seconds(s.StartTimeout),
	}
	if a := s.Adaptive; a != nil {
		l.Adaptive = &AdaptiveLimit{Min: max(1, a.Min), Max: max(0, a.Max), TargetPressure: max(0, a.TargetPressure)}
	}
	if s.FillEvery > 0 {
		l.FillEverySeconds, l.Burst = seconds(s.FillEvery), max(1, s.Burst)
	}
	if s.Signals[throttle.SignalCPUPressure].Max > 0 {
		l.MinUtilization = max(0, s.MinUtilization)
	}
	if s.NoProgressAfter >= 0 {
		l.NoProgressAfterSeconds = seconds(s.NoProgressAfter)
	}
	return l
}

// signalLimits returns the limits of the signals that have one.
func signalLimits(s throttle.Settings) (limits []SignalLimit) {
	for signal, limit := range s.Signals {
		if limit.Max > 0 {
			limits = append(limits, SignalLimit{Name: throttle.Signal(signal).String(), Max: limit.Max, Increment: max(0, limit.Increment)})
		}
	}
	return limits
}

// Any reports whether any limit is set.
func (l Limits) Any() bool {
	return l.MaxConcurrent > 0 || l.Adaptive != nil || l.FillEverySeconds > 0 || l.MaxPulling > 0 || len(l.Signals) > 0
}
