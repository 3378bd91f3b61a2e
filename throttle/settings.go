package throttle

import "time"

// Defaults of [Settings].
const (
	DefaultMaxWait      = 10 * time.Minute
	DefaultStartTimeout = 5 * time.Minute
)

// Settings say what the limiter holds a start for. The zero value holds
// nothing. A Settings is a value: the limiter keeps a copy.
type Settings struct {
	// MaxConcurrent is the number of starts at a time. Zero or less: no limit.
	MaxConcurrent int
	// FillEvery is the time in which one more start is allowed. Zero or less: no
	// limit.
	FillEvery time.Duration
	// Burst is the number of starts that FillEvery lets happen at once after a
	// quiet time. Below 1 it counts as 1. Without FillEvery it means nothing.
	Burst int
	// MaxWait is how long a pod waits before it is admitted over the limit. Zero
	// or less: DefaultMaxWait. Request.MaxWait is stronger.
	MaxWait time.Duration
	// StartTimeout is how long a start may hold its slot. Zero or less:
	// DefaultStartTimeout.
	StartTimeout time.Duration
}

func (s Settings) maxWait() time.Duration {
	if s.MaxWait > 0 {
		return s.MaxWait
	}
	return DefaultMaxWait
}

func (s Settings) startTimeout() time.Duration {
	if s.StartTimeout > 0 {
		return s.StartTimeout
	}
	return DefaultStartTimeout
}

// PerCore gives the number of starts at a time that a fraction per core means on
// a node with so many cores: the product, rounded down, and at least 1. A
// fraction that is written in decimal means that decimal: 0.29 of 100 is 29.
func PerCore(fraction float64, cores int) int {
	const rounding = 1e-9 // 0.29*100 is 28.999999999999996
	return max(1, int(fraction*float64(cores)+rounding))
}
