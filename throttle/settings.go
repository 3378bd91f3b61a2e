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
