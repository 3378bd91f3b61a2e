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
	// loadDecay is the time constant of the load average of one minute: so long after a
	// start it shows 63 % of it.
	loadDecay = time.Minute
	// admissionsKept is how long an admission is remembered: the load average shows all but
	// 0.7 % of it then.
	admissionsKept = 5 * loadDecay
)

// setLimitsLocked replaces the settings. The token bucket of an earlier setting is kept,
// also over a time without one, so that a change of the configuration is no free burst; so
// are debts, loans and what the adaptive limit learned.
func (l *Limiter) setLimitsLocked(now time.Time, s Settings) {
	l.settings = s.WithDefaults()
	l.setAdaptiveLocked()
	l.setLimitLocked()
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
}

// slotsLocked gives how many slots are taken.
func (l *Limiter) slotsLocked() (n int) {
	for _, t := range l.inFlight {
		if t.slot {
			n++
		}
	}
	return n
}

// capacityLocked is how many may start at a time, with the slots that are lent.
func (l *Limiter) capacityLocked() int { return max(l.limit, l.lentUpTo) }

// heldLocked gives the first limit of the node that holds the next start, and takes none;
// the zero value: every limit allows it.
func (l *Limiter) heldLocked(now time.Time) Held {
	if h := l.heldBySlotsLocked(); !h.none() {
		return h
	}
	return l.heldByOthersLocked(now)
}

func (l *Limiter) heldBySlotsLocked() Held {
	taken, capacity := l.slotsLocked(), l.capacityLocked()
	if l.limit <= 0 || taken < capacity {
		return Held{}
	}
	return Held{Reason: reasons.Concurrency, Measured: float64(taken), Threshold: float64(capacity)}
}

// heldByOthersLocked asks every limit but that of the starts at a time.
func (l *Limiter) heldByOthersLocked(now time.Time) Held {
	h := l.heldByRateLocked(now)
	for signal := Signal(0); h.none() && signal < numSignals; signal++ {
		h = l.heldBySignalLocked(now, signal)
	}
	return h
}

// heldByRateLocked asks the token bucket without taking a token.
func (l *Limiter) heldByRateLocked(now time.Time) Held {
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

// heldBySignalLocked holds a start back while a signal, with the debts of the starts that
// it does not show yet, is not below its bound. A signal that is blind, was never
// measured, or has not been for readingKept opens it. CPU pressure counts only where the
// CPU is used.
func (l *Limiter) heldBySignalLocked(now time.Time, signal Signal) Held {
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
	reason, owed := l.owedLocked(signal)
	if value+owed < bound {
		return Held{}
	}
	return Held{Reason: reason, Signal: signal, Measured: value + owed, Owed: owed, Threshold: bound}
}

// owedLocked gives the debts of the starts that a signal does not show yet.
func (l *Limiter) owedLocked(signal Signal) (reason reasons.Reason, owed float64) {
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

// opensAtLocked gives when the limits allow one more start by themselves, those of the
// starts at a time left out if they may be passed; zero: not by time alone.
func (l *Limiter) opensAtLocked(now time.Time, passSlots bool) time.Time {
	if !passSlots && !l.heldBySlotsLocked().none() {
		return time.Time{}
	}
	at := later(now, l.heldByRateLocked(now).Until)
	for signal := range numSignals {
		if !l.heldBySignalLocked(now, signal).none() {
			at = later(at, l.expiryLocked(signal))
		}
	}
	return at
}

// expiryLocked gives when the limit on a signal opens if none is measured anew.
func (l *Limiter) expiryLocked(signal Signal) time.Time {
	at := l.signals[signal].To
	if cpu := l.signals[SignalCPU].To; signal == SignalCPUPressure && cpu.Before(at) && l.settings.MinUtilization > 0 {
		at = cpu
	}
	return at.Add(readingKept + 1)
}

// takeLocked takes every limit. Each that can refuse has agreed before, except for a start
// over the limit: then it takes what there is.
func (l *Limiter) takeLocked(now time.Time) {
	if l.settings.FillEvery > 0 {
		l.bucket.AllowN(now, 1)
	}
	l.debts.add(now)
	l.admissions.add(now)
}

// admissionTimes are those of the latest admissions, in their order.
type admissionTimes struct{ times []time.Time }

func (a *admissionTimes) add(now time.Time) {
	a.forget(now)
	a.times = append(a.times, now)
}

func (a *admissionTimes) forget(now time.Time) {
	n := 0
	for n < len(a.times) && now.Sub(a.times[n]) > admissionsKept {
		n++
	}
	a.times = slices.Delete(a.times, 0, n)
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
