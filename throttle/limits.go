package throttle

import (
	"fmt"
	"time"

	"golang.org/x/time/rate"
)

// A limit is one condition that every start has to meet. check changes nothing.
// take is called after every limit agreed, at the same time as check.
type limit interface {
	check(now time.Time, starting int) (held Held, ok bool)
	take(now time.Time)
	// interval is the shortest mean time between two admissions that the limit
	// allows, given the duration of one start; zero where it has no say.
	interval(start time.Duration) time.Duration
	// outlook is how many starts the limit is expected to admit from now on in the
	// time within, given the duration of one start; zero: that is not known.
	outlook(now time.Time, starting int, start, within time.Duration) float64
}

// Held says which limit holds a start back, and by what measure. The zero value
// holds nothing.
type Held struct {
	// Reason is the limit.
	Reason Reason
	// Signal is which signal, of CPULoad, IOLoad, LoadAverage and Pressure.
	Signal Signal
	// Measured and Threshold are in the unit of the limit: starts at a time for
	// Concurrency, seconds until the next start and seconds per start for Rate,
	// pods for Queued, GateRoom and Pulling, else that of the signal.
	Measured, Threshold float64
	// Until is when the limit will allow one more start by itself. Zero: that is
	// not known.
	Until time.Time
}

// String says what was measured against what, for people.
func (h Held) String() string {
	switch h.Reason {
	case Concurrency:
		return fmt.Sprintf("%g of %g starting", h.Measured, h.Threshold)
	case Rate:
		return fmt.Sprintf("next start in %s, one per %s", seconds(h.Measured), seconds(h.Threshold))
	case Queued:
		return fmt.Sprintf("%g ahead", h.Measured)
	case Pulling:
		return fmt.Sprintf("%g of %g pulling images", h.Measured, h.Threshold)
	case LoadAverage:
		return fmt.Sprintf("load %.2f of %g", h.Measured, h.Threshold)
	case CPULoad, IOLoad, Pressure:
		return fmt.Sprintf("%s %.0f%% of %g%%", signalNames[h.Signal][1], h.Measured, h.Threshold)
	case GateRoom:
		return fmt.Sprintf("%g of %g near their turn", h.Measured, h.Threshold)
	default:
		return ""
	}
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond)
}

type concurrency struct{ most int }

func (c concurrency) check(_ time.Time, starting int) (Held, bool) {
	if starting < c.most {
		return Held{}, true
	}
	return Held{Reason: Concurrency, Measured: float64(starting), Threshold: float64(c.most)}, false
}

func (concurrency) take(time.Time) {}

func (c concurrency) interval(start time.Duration) time.Duration {
	return start / time.Duration(c.most)
}

func (c concurrency) outlook(_ time.Time, starting int, start, within time.Duration) float64 {
	if start <= 0 {
		return float64(2*c.most + 1)
	}
	return float64(max(0, c.most-starting)) + float64(c.most)*within.Seconds()/start.Seconds()
}

// tokens is the token bucket of golang.org/x/time/rate, asked without taking.
type tokens struct {
	bucket *rate.Limiter
	every  time.Duration
}

func (t tokens) check(now time.Time, _ int) (Held, bool) {
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

func (t tokens) take(now time.Time) { t.bucket.AllowN(now, 1) }

func (t tokens) interval(time.Duration) time.Duration { return t.every }

func (t tokens) outlook(now time.Time, _ int, _, within time.Duration) float64 {
	return t.bucket.TokensAt(now) + within.Seconds()/t.every.Seconds()
}

// setLimitsLocked replaces the limits by those of s. The token bucket of an earlier
// setting is kept, so that a change of the configuration is no free burst.
func (l *Limiter) setLimitsLocked(now time.Time, s Settings) {
	l.settings, l.due = s, time.Time{}
	l.limits = l.limits[:0]
	if s.MaxConcurrent > 0 {
		l.limits = append(l.limits, concurrency{most: s.MaxConcurrent})
	}
	if s.FillEvery <= 0 {
		l.bucket, l.taken = nil, time.Time{}
		return
	}
	fill, burst := rate.Every(s.FillEvery), max(1, s.Burst)
	if l.bucket == nil {
		l.bucket = rate.NewLimiter(fill, burst)
	} else {
		l.taken = l.bucketTimeLocked(now)
		l.bucket.SetLimitAt(l.taken, fill)
		l.bucket.SetBurstAt(l.taken, burst)
	}
	l.limits = append(l.limits, tokens{bucket: l.bucket, every: s.FillEvery})
}

// checkLocked asks every limit and takes none.
func (l *Limiter) checkLocked(now time.Time) (Held, bool) {
	now = l.bucketTimeLocked(now)
	for _, lim := range l.limits {
		if held, ok := lim.check(now, l.starting.len()); !ok {
			return held, false
		}
	}
	return Held{}, true
}

// takeLocked takes every limit. Every limit that can say no has agreed before,
// except for a start over the limit: then each takes what it has.
func (l *Limiter) takeLocked(now time.Time) {
	l.taken = l.bucketTimeLocked(now)
	for _, lim := range l.limits {
		lim.take(l.taken)
	}
}

// bucketTimeLocked gives now, but never a time before the last at which the bucket
// was changed. Two callers may read the clock in one order and get the lock in the
// other; the bucket would fill twice for the time between.
func (l *Limiter) bucketTimeLocked(now time.Time) time.Time {
	if now.Before(l.taken) {
		return l.taken
	}
	return now
}
