package throttle

import (
	"math"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Limits of the node
//
// The limits of the node are the number of starts at a time, a token bucket, and limits on
// signals ([Limiter.Observe]). A signal does not show the load of a start at once, so each
// start owes an increment, until the signal is measured over a time that began after the
// start. The load average follows with a time constant of a minute: at an age t, a start owes
// exp(-t/1m) of the increment. The limit on a signal is open while the signal has an error,
// was never measured, or was not measured for half a minute.
//
// The adaptive limit (package adaptive) does not get two things, because it would take both
// for proof that the node bears many more starts: exempt starts, which are mostly light, and
// starts that ended Stuck, as starts that succeeded.
//
// A [Pause] closes them all for a time that its caller limits. It is no limit on how many start, so no overdue pod and
// no loan exceeds it.

const (
	// readingValidFor is how long a reading is valid. If the sensor gives no other in that time, its
	// limit opens.
	readingValidFor = 30 * time.Second
	// intervalWindow is the time over which the interval between admissions is measured.
	intervalWindow = time.Minute
	// staysOpen is how long a limit on a signal must not have held a start until it is expected to hold none soon.
	staysOpen = 15 * time.Second
	// loadDecay is the time constant of the load average of one minute.
	loadDecay = time.Minute
	// admissionsKept is how long an admission is remembered: after that, the load average shows it.
	admissionsKept = 5 * loadDecay
)

// limits are the limits of the node, without the number of starts at a time: the token bucket, and the
// limits on signals with the debts of starts that a signal does not show yet.
type limits struct {
	settings   *Settings
	bucket     *rate.Limiter // kept while there is no rate limit; nil if there never was one
	exceeded   time.Time     // when a start last took no token of the rate limit; zero if none did
	signals    Signals
	closed     time.Time      // when a reading last made a limit on a signal hold starts; zero if none did
	debts      admissionTimes // of all starts
	admissions admissionTimes // of all starts but exempt and adopted ones
}

// configure applies the settings. It keeps the tokens: a change of the configuration must not allow
// another burst.
func (l *limits) configure(now time.Time) {
	if l.settings.FillEvery <= 0 {
		return
	}
	fill, burst := rate.Every(l.settings.FillEvery), max(1, l.settings.Burst)
	if l.bucket == nil {
		l.bucket = rate.NewLimiter(fill, burst)
	}
	l.bucket.SetLimitAt(now, fill)
	l.bucket.SetBurstAt(now, burst)
}

// held returns the first limit that holds the next start, or the zero value if none does. It takes
// nothing.
func (l *limits) held(now time.Time) Held {
	h := l.heldByRate(now)
	for signal := Signal(0); h.none() && signal < numSignals; signal++ {
		h = l.heldBySignal(now, signal)
	}
	return h
}

// observe takes readings.
func (l *limits) observe(now time.Time, s Signals) {
	l.signals = s
	for signal := range numSignals {
		if !l.heldBySignal(now, signal).none() {
			l.closed = now
		}
	}
}

// allowAtOnce returns how many starts the limits on signals allow at this moment: none if one was closed a short time ago, as
// it may close again, and any number if no start has an increment.
func (l *limits) allowAtOnce(now time.Time) float64 {
	if !l.closed.IsZero() && now.Sub(l.closed) < staysOpen {
		return 0
	}
	most := math.Inf(1)
	for signal := range numSignals {
		limit := l.settings.Signals[signal]
		value, known := l.signals.valueAt(now, signal)
		if _, owed := l.owed(signal); limit.Max > 0 && limit.Increment > 0 && known {
			most = min(most, math.Ceil((limit.Max-value-owed)/limit.Increment))
		}
	}
	return max(0, most)
}

// heldByRate returns the token bucket as the limit if it has no token. It takes none.
func (l *limits) heldByRate(now time.Time) Held {
	fill := l.settings.FillEvery
	if fill <= 0 {
		return Held{}
	}
	have := l.bucket.TokensAt(now)
	if have >= 1 {
		return Held{}
	}
	wait := time.Duration((1 - have) * float64(fill))
	return Held{
		Reason: reasons.Rate, Measured: wait.Seconds(), Threshold: fill.Seconds(),
		// The bucket computes in floating point: a microsecond later it has a token for sure.
		Until: now.Add(wait + time.Microsecond),
	}
}

// mayExceedRate reports whether an overdue ticket may start without a token: one may in the time of a token. So at most
// twice as many start as the rate limit allows.
func (l *limits) mayExceedRate(now time.Time) bool {
	return l.heldByRate(now).none() || now.Sub(l.exceeded) >= l.settings.FillEvery
}

// heldBySignal returns a signal as the limit unless it is below its Max, with the debts of the starts that it does not
// show yet.
func (l *limits) heldBySignal(now time.Time, signal Signal) Held {
	threshold := l.settings.Signals[signal].Max
	value, known := l.signals.valueAt(now, signal)
	if threshold <= 0 || !known {
		return Held{}
	}
	if least := l.settings.MinUtilization; signal == SignalCPUPressure && least > 0 {
		if cpu, known := l.signals.valueAt(now, SignalCPU); !known || cpu <= least {
			return Held{}
		}
	}
	reason, owed := l.owed(signal)
	if value+owed < threshold {
		return Held{}
	}
	return Held{Reason: reason, Signal: signal, Measured: value + owed, Owed: owed, Threshold: threshold}
}

// owed returns the reason that belongs to a signal, and the debts of the starts that it does not show yet.
func (l *limits) owed(signal Signal) (reason reasons.Reason, owed float64) {
	r, each := &l.signals[signal], max(0, l.settings.Signals[signal].Increment)
	switch signal {
	case SignalCPU:
		return reasons.CPULoad, each * float64(l.debts.after(r.From))
	case SignalIOWait:
		return reasons.IOLoad, each * float64(l.debts.after(r.From))
	case SignalLoad:
		return reasons.LoadAverage, each * l.debts.decayed(r.To)
	default:
		return reasons.Pressure, 0
	}
}

// take takes what one start takes of the limits.
func (l *limits) take(now time.Time) {
	if l.settings.FillEvery > 0 && !l.bucket.AllowN(now, 1) {
		l.exceeded = now
	}
	l.debts.add(now)
	l.admissions.add(now)
}

// limitsSignals reports whether a limit on a signal is set.
func (l *limits) limitsSignals() bool {
	return slices.ContainsFunc(l.settings.Signals[:], func(s SignalLimit) bool { return s.Max > 0 })
}

// admissionTimes are the times of the latest admissions, in their order.
type admissionTimes struct{ times []time.Time }

// add adds an admission, and forgets those before admissionsKept.
func (a *admissionTimes) add(now time.Time) {
	a.times = append(a.times, now)
	kept := slices.IndexFunc(a.times, func(t time.Time) bool { return now.Sub(t) <= admissionsKept })
	a.times = slices.Delete(a.times, 0, kept)
}

// after returns how many admissions were after a time.
func (a *admissionTimes) after(at time.Time) (n int) {
	for n < len(a.times) && a.times[len(a.times)-1-n].After(at) {
		n++
	}
	return n
}

// decayed returns the sum of the parts of the admissions that an average with the time constant
// loadDecay does not show at a time.
func (a *admissionTimes) decayed(at time.Time) (n float64) {
	for _, t := range a.times {
		n += math.Exp(-max(0, at.Sub(t).Seconds()) / loadDecay.Seconds())
	}
	return n
}
