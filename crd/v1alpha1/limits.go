package v1alpha1

import "time"

// ConcurrencyLimit is how many pods may be starting at a time on a node with so
// many CPU cores. limited is false where the config sets no such limit; limit is
// at least 1 otherwise.
func (t ThrottleConfig) ConcurrencyLimit(cores int) (limit int, limited bool) {
	switch m := t.MaxConcurrent; {
	case m == nil:
		return 0, false
	case m.Value != nil:
		return max(1, int(*m.Value)), true
	case m.PerCore != nil:
		return perCoreLimit(*m.PerCore, cores)
	default:
		return 0, false
	}
}

func perCoreLimit(perCore Decimal, cores int) (limit int, limited bool) {
	milli, err := perCore.Milli()
	if err != nil || milli == 0 {
		return 0, false
	}
	return max(1, int(int64(cores)*milli/1000)), true
}

// StartRate is the token bucket of starts: one token per every, at most burst
// saved up. limited is false where the config sets no such limit; every is above
// 0 and burst at least 1 otherwise.
func (t ThrottleConfig) StartRate() (every time.Duration, burst int, limited bool) {
	if t.RateLimit == nil {
		return 0, 0, false
	}
	every, err := t.RateLimit.FillFactor.Parse()
	if err != nil || every <= 0 {
		return 0, 0, false
	}
	burst = DefaultBurst
	if b := t.RateLimit.Burst; b != nil {
		burst = max(1, int(*b))
	}
	return every, burst, true
}

// PullingLimit is how many pods may be between their sandbox and their first
// container at a time; 0: not limited.
func (t ThrottleConfig) PullingLimit() int {
	if t.MaxPulling == nil {
		return 0
	}
	return max(1, int(*t.MaxPulling))
}

// AdaptiveRange is what bounds the number of starts at a time that is found out
// by itself. on is false where the config does not ask for that.
func (t ThrottleConfig) AdaptiveRange() (r AdaptiveRange, on bool) {
	a := t.Adaptive
	if a == nil {
		return AdaptiveRange{}, false
	}
	r = AdaptiveRange{TargetPressure: a.TargetPressure.float(0), Min: DefaultAdaptiveMin}
	if a.Min != nil {
		r.Min = max(1, int(*a.Min))
	}
	if a.Max != nil {
		r.Max = max(r.Min, int(*a.Max))
	}
	return r, true
}

// AdaptiveRange bounds the number of starts at a time that is found out by itself.
type AdaptiveRange struct {
	TargetPressure float64 // percent; 0: what suits most nodes
	Min            int     // at least 1
	Max            int     // 0: no bound
}

// LoanAfter is how long no start under way may make progress before a slot is
// lent. lends is false where none ever is.
func (t ThrottleConfig) LoanAfter() (after time.Duration, lends bool) {
	after = t.NoProgressAfter.orDefault(DefaultNoProgressAfter)
	return after, after > 0
}
