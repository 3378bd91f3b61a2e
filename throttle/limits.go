package throttle

import (
	"time"

	"golang.org/x/time/rate"
)

// A limit is one condition that every start has to meet. check changes nothing.
// take is called after every limit agreed, at the same time as check. Limits are
// guarded by the lock of their limiter.
type limit interface {
	check(now time.Time) (held Held, ok bool)
	take(now time.Time)
	// interval is the shortest mean time between two admissions that the limit
	// allows, given the duration of one start; zero where it has no say. known is
	// false where nobody can say.
	interval(start time.Duration) (every time.Duration, known bool)
	// outlook is how many starts the limit is expected to admit from now on, seen
	// with the caution that the view asks for; known is false where nobody can say.
	outlook(now time.Time, v view) (starts float64, known bool)
}

// slots bound the starts at a time.
type slots struct {
	starting *order
	most     int // zero or less: no bound
	reach    int // what most may soon come to, where that is more
	lent     int // beyond most
}

// capacity is how many may start at a time, those lent with them.
func (s *slots) capacity() int { return s.most + s.lent }

func (s *slots) check(time.Time) (Held, bool) {
	if s.starting.len() < s.capacity() {
		return Held{}, true
	}
	return Held{Reason: Concurrency, Measured: float64(s.starting.len()), Threshold: float64(s.capacity())}, false
}

func (*slots) take(time.Time) {}

func (s *slots) interval(start time.Duration) (time.Duration, bool) {
	return start / time.Duration(s.most), true
}

// tokens is the token bucket of golang.org/x/time/rate, asked without taking.
type tokens struct {
	bucket *rate.Limiter
	every  time.Duration
}

func (t *tokens) check(now time.Time) (Held, bool) {
	have := t.bucket.TokensAt(now)
	if have >= 1 {
		return Held{}, true
	}
	wait := time.Duration((1 - have) * float64(t.every))
	return Held{
		Reason:    Rate,
		Measured:  wait.Seconds(),
		Threshold: t.every.Seconds(),
		// The bucket computes in floating point: a moment later it has surely
		// filled.
		Until: now.Add(wait + time.Microsecond),
	}, false
}

func (t *tokens) take(now time.Time) { t.bucket.AllowN(now, 1) }

func (t *tokens) interval(time.Duration) (time.Duration, bool) { return t.every, true }

func (t *tokens) outlook(now time.Time, v view) (float64, bool) {
	return t.bucket.TokensAt(now) + v.waitable.Seconds()/2/t.every.Seconds(), true
}

// setLimitsLocked replaces the limits by those of s. The token bucket of an earlier
// setting is kept, also over a time without one, so that a change of the configuration
// is no free burst; so is what starts owe, what is lent, and what the adaptive limit
// learned.
func (l *Limiter) setLimitsLocked(now time.Time, s Settings) {
	l.settings = s
	l.limits = l.limits[:0]
	l.setAdaptiveLocked(now)
	l.setMostLocked()
	if l.slots.most > 0 {
		l.limits = append(l.limits, &l.slots)
	}
	l.setBucketLocked(now)
	l.limits = append(l.limits, l.signalLimitsLocked()...)
}

func (l *Limiter) setBucketLocked(now time.Time) {
	s := l.settings
	if s.FillEvery <= 0 {
		return
	}
	fill, burst := rate.Every(s.FillEvery), max(1, s.Burst)
	if l.bucket == nil {
		l.bucket = rate.NewLimiter(fill, burst)
	} else {
		l.bucket.SetLimitAt(now, fill)
		l.bucket.SetBurstAt(now, burst)
	}
	l.limits = append(l.limits, &tokens{bucket: l.bucket, every: s.FillEvery})
}

// checkLocked asks every limit and takes none.
func (l *Limiter) checkLocked(now time.Time) (Held, bool) {
	for _, lim := range l.limits {
		if held, ok := lim.check(now); !ok {
			return held, false
		}
	}
	return Held{}, true
}

// othersAllowLocked asks every limit but that of the starts at a time.
func (l *Limiter) othersAllowLocked(now time.Time) bool {
	for _, lim := range l.limits {
		if lim == limit(&l.slots) {
			continue
		}
		if _, ok := lim.check(now); !ok {
			return false
		}
	}
	return true
}

// takeLocked takes every limit. Every limit that can say no has agreed before,
// except for a start over the limit: then each takes what it has.
func (l *Limiter) takeLocked(now time.Time) {
	for _, lim := range l.limits {
		lim.take(now)
	}
	l.takes.add(now)
	l.paced.add(now)
}
