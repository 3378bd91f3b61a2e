package waiting

import (
	"time"

	"golang.org/x/time/rate"
)

// budget limits what is used of a time to a share of the time that passes. It is safe for concurrent use.
type budget struct {
	most   time.Duration // can be saved up, and be owed
	tokens *rate.Limiter // microseconds that are left, plus the most that can be owed
}

// newBudget returns an unused budget. most is how much can be saved up, and also how much can be owed.
func newBudget(share float64, most time.Duration) budget {
	return budget{most, rate.NewLimiter(rate.Limit(share*1e6), 2*int(most.Microseconds()))}
}

// left returns how much is left now. If it is less than 0, that much is owed.
func (b budget) left(now time.Time) time.Duration {
	return time.Duration(b.tokens.TokensAt(now))*time.Microsecond - b.most
}

// charge records that d was used. What would be owed beyond the limit is forgiven.
func (b budget) charge(now time.Time, d time.Duration) {
	taken := func() bool {
		return b.tokens.AllowN(now, int(min(max(0, d.Microseconds()), int64(b.tokens.TokensAt(now)))))
	}
	for !taken() { // another call has charged meanwhile, so that fewer tokens are left
		continue
	}
}
