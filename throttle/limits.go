package throttle

import (
	"math"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

const (
	// readingKept is how long a reading says anything. A sensor that gives no other for so
	// long has died: its limit is open, as if it were blind.
	readingKept = 30 * time.Second
	// paceOver is the time over which the pace of admissions is measured.
	paceOver = time.Minute
	// loadDecay is the time constant of the load average of one minute.
	loadDecay = time.Minute
	// admissionsKept is how long an admission is remembered: the load average shows all of it.
	admissionsKept = 5 * loadDecay
)

// limits are those of the node beside the number of starts at a time: the token bucket and
// the bounds on signals, with the debts of the starts that these do not show yet.
type limits struct {
	settings   *Settings
	bucket     *rate.Limiter // kept while there is no such limit; nil: there never was
	signals    Signals
	debts      admissionTimes // of those that a signal may not show yet
	admissions admissionTimes // of those that the limits allowed, or a deadline
}

// configure follows the settings. The token bucket of an earlier setting is kept: a change of
// the configuration is no free burst.
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

// held gives the first limit that holds the next start, and takes none; the zero value: every
// limit allows it.
func (l *limits) held(now time.Time) Held {
	h := l.heldByRate(now)
	for signal := Signal(0); h.none() && signal < numSignals; signal++ {
		h = l.heldBySignal(now, signal)
	}
	return h
}

// heldByRate asks the token bucket without taking a token.
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
		// The bucket computes in floating point: a moment later it has surely filled.
		Until: now.Add(wait + time.Microsecond),
	}
}

// heldBySignal holds a start back while a signal, with the debts of the starts that it does
// not show yet, is not below its bound.
func (l *limits) heldBySignal(now time.Time, signal Signal) Held {
	bound := l.settings.Signals[signal].Max
	value, known := l.signals.valueAt(now, signal)
	if bound <= 0 || !known {
		return Held{}
	}
	if least := l.settings.MinUtilization; signal == SignalCPUPressure && least > 0 {
		if cpu, known := l.signals.valueAt(now, SignalCPU); !known || cpu <= least {
			return Held{}
		}
	}
	reason, owed := l.owed(signal)
	if value+owed < bound {
		return Held{}
	}
	return Held{Reason: reason, Signal: signal, Measured: value + owed, Owed: owed, Threshold: bound}
}

// owed gives the debts of the starts that a signal does not show yet.
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

// take takes of every limit what there is of it.
func (l *limits) take(now time.Time) {
	if l.settings.FillEvery > 0 {
		l.bucket.AllowN(now, 1)
	}
	l.debts.add(now)
	l.admissions.add(now)
}

// boundsSignals tells whether a limit on a signal is set.
func (l *limits) boundsSignals() bool {
	return slices.ContainsFunc(l.settings.Signals[:], func(s SignalLimit) bool { return s.Max > 0 })
}

// admissionTimes are those of the latest admissions, in their order.
type admissionTimes struct{ times []time.Time }

// add adds one, and forgets those that count no longer.
func (a *admissionTimes) add(now time.Time) {
	a.times = append(a.times, now)
	kept := slices.IndexFunc(a.times, func(t time.Time) bool { return now.Sub(t) <= admissionsKept })
	a.times = slices.Delete(a.times, 0, kept)
}

// after counts the admissions after a time. One at that time does not count.
func (a *admissionTimes) after(at time.Time) (n int) {
	for n < len(a.times) && a.times[len(a.times)-1-n].After(at) {
		n++
	}
	return n
}

// decayed counts the admissions, each as far as an average with loadDecay does not show
// it at a time.
func (a *admissionTimes) decayed(at time.Time) (n float64) {
	for _, t := range a.times {
		n += math.Exp(-max(0, at.Sub(t).Seconds()) / loadDecay.Seconds())
	}
	return n
}
