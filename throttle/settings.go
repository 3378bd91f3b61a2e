package throttle

import (
	"cmp"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
)

// Settings say what the limiter holds a start for. The zero value holds
// nothing. A Settings is a value: the limiter keeps a copy.
type Settings struct {
	// MaxConcurrent is the number of starts at a time. Zero or less: no limit.
	MaxConcurrent int
	// CountCores: MaxConcurrent is the number of cores that the starts at a time are expected to
	// keep busy, by Expected.Cost, instead of their own number. A start of which nothing is known
	// counts as one core. One that exceeds the number alone starts when no other does.
	CountCores bool
	// FillEvery is the time in which one more start is allowed. Zero or less: no limit.
	FillEvery time.Duration
	// Burst is the number of starts that FillEvery lets happen at once after a quiet time, 1 at
	// least.
	Burst int
	// MaxWait is how long a pod waits before it is admitted over the limit. Zero or less: 10
	// minutes. Where Request.MaxWait is less, that counts.
	MaxWait time.Duration
	// NoFairness: pods of the same priority go by their arrival, whatever flow they are of.
	NoFairness bool
	// StartTimeout is how long a start may hold its slot. Zero or less: 5 minutes.
	StartTimeout time.Duration
	// Signals hold a start back while a signal, with what the starts since it was measured
	// owe, is not below its bound.
	Signals SignalLimits
	// MinUtilization is the CPU use in percent above which the bound on SignalCPUPressure
	// counts: below, processes are held back by their own CPU limit. Zero: 70. Below zero: it
	// always counts.
	MinUtilization float64
	// MaxPulling is the number of pods at a time that pull images, between the sandbox and the
	// first container. Zero or less: no limit.
	MaxPulling int
	// NoProgressAfter is how long every start under way has to make no progress until a slot
	// is lent to another. Zero: 10 seconds. Below zero: none is lent.
	NoProgressAfter time.Duration
	// Adaptive finds the number of starts at a time from the signals; nil: it does not. Where
	// MaxConcurrent is set too, the less of both is the limit.
	Adaptive *adaptive.Settings
}

// SignalLimits are the limits on the signals, by Signal. The zero value has none.
type SignalLimits [numSignals]SignalLimit

// SignalLimit bounds one signal. The zero value does not.
type SignalLimit struct {
	// Max is the value, in the unit of the signal, below which a start is allowed.
	// Zero or less: no limit.
	Max float64
	// Increment is what each start owes, in the unit of the signal, until the signal shows it;
	// of SignalCPU, SignalIOWait and SignalLoad. Zero or less: nothing.
	Increment float64
}

// WithDefaults gives the settings that these mean.
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

// CountsCores tells whether there is a limit on the cores that starts are expected to keep busy.
func (s Settings) CountsCores() bool { return s.CountCores && s.MaxConcurrent > 0 }

// Watches tells whether a limit needs the signal.
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
