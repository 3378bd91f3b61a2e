package throttle

import (
	"cmp"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
)

// Settings are the limits of a limiter. The zero value has none, except for the time limits below.
type Settings struct {
	// MaxConcurrent is the number of starts at a time. Zero or less: no limit.
	MaxConcurrent int
	// CountCores: MaxConcurrent is the number of cores that the starts at a time are expected to
	// keep busy, by Profile.Cost. A start of unknown cost counts as one core. A start that alone
	// exceeds the number starts when no other does.
	CountCores bool
	// FillEvery is how often one more start is allowed. Zero or less: no limit.
	FillEvery time.Duration
	// Burst is the number of starts that FillEvery allows at once after a quiet time, at least 1.
	Burst int
	// MaxWait is how long a pod waits before it is admitted over the limit. Zero or less: 10
	// minutes. If Request.MaxWait is less, that counts.
	MaxWait time.Duration
	// NoFairness: pods go by their priority, repeats and arrival, whatever their flow.
	NoFairness bool
	// StartTimeout is how long a start may hold its slot. Then it ends as Stuck. Zero or less: 5
	// minutes.
	StartTimeout time.Duration
	// Signals are limits on signals. A start waits unless the signal is below Max. The limit's
	// Increment is added to the measured value for each start that the signal does not show yet.
	Signals SignalLimits
	// MinUtilization is the CPU use in percent above which the limit on SignalCPUPressure counts.
	// Below it, processes stall because of their own CPU limits. Zero means 70. If it is below zero,
	// the limit always counts.
	MinUtilization float64
	// MaxPulling is the number of pods at a time that are between their sandbox and their first
	// container, where they pull images. Zero or less means no limit.
	MaxPulling int
	// NoProgressAfter is how long every start that holds a slot must make no progress before a slot
	// is lent. Zero means 10 seconds. If it is below zero, no slot is lent.
	NoProgressAfter time.Duration
	// Adaptive are the settings of the adaptive limit, which finds the number of starts at a time
	// from the signals; nil if there is no adaptive limit. If MaxConcurrent is set too, the lower one
	// counts.
	Adaptive *adaptive.Settings
}

// SignalLimits are the limits on all signals, by Signal. The zero value has none.
type SignalLimits [numSignals]SignalLimit

// SignalLimit is the limit on one signal. The zero value is no limit.
type SignalLimit struct {
	// Max is the value below which a start is allowed, in the unit of the signal. Zero or less: no
	// limit.
	Max float64
	// Increment is how much a start is taken to add to the signal until the signal shows it, in the
	// unit of the signal. It counts for SignalCPU, SignalIOWait and SignalLoad. Zero or less: nothing.
	Increment float64
}

// WithDefaults returns the settings with each default in place of the zero value.
func (s Settings) WithDefaults() Settings {
	if s.MaxWait <= 0 {
		s.MaxWait = 10 * time.Minute
	}
	if s.StartTimeout <= 0 {
		s.StartTimeout = 5 * time.Minute
	}
	s.NoProgressAfter = cmp.Or(s.NoProgressAfter, 10*time.Second)
	s.MinUtilization = cmp.Or(s.MinUtilization, 70)
	return s
}

// CountsCores reports whether there is a limit on the cores that starts are expected to keep busy.
func (s Settings) CountsCores() bool { return s.CountCores && s.MaxConcurrent > 0 }

// Watches reports whether a limit needs the signal.
func (s Settings) Watches(signal Signal) bool {
	switch {
	case s.Signals[signal].Max > 0:
		return true
	case s.Adaptive != nil:
		return signal == SignalCPU || signal == SignalCPUPressure || signal == SignalIOPressure
	default:
		return signal == SignalCPU && s.Signals[SignalCPUPressure].Max > 0 && s.MinUtilization >= 0
	}
}
