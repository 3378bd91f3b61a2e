package throttle

import (
	"math"
	"sort"
	"time"
)

// readingKept is how long a reading says anything. A sensor that gives no other
// for so long has died: its limit is open, as if it were blind.
const readingKept = 30 * time.Second

// takesKept is how long an admission is remembered. Every sensor that works has
// measured anew long before.
const takesKept = time.Minute

// signalLimit holds a start back while a signal, with what the starts owe that it
// was not measured after, is not below a bound. A signal that is blind, was never
// measured, or has not been for readingKept opens it.
type signalLimit struct {
	reason         Reason
	signal         Signal
	max, increment float64
	readings       *Signals
	takes          *takes
	// minCPU is the CPU use in percent above which the limit counts; zero or less:
	// it always does. Where the CPU use is not known it does not.
	minCPU float64
}

func (s *signalLimit) check(now time.Time) (Held, bool) {
	value, known := s.readings.valueAt(now, s.signal)
	if !known {
		return Held{}, true
	}
	if s.minCPU > 0 {
		if cpu, known := s.readings.valueAt(now, SignalCPU); !known || cpu <= s.minCPU {
			return Held{}, true
		}
	}
	var owed float64
	if s.increment > 0 {
		owed = s.increment * float64(s.takes.after(s.readings[s.signal].From))
	}
	if value+owed < s.max {
		return Held{}, true
	}
	return Held{Reason: s.reason, Signal: s.signal, Measured: value + owed, Owed: owed, Threshold: s.max}, false
}

func (*signalLimit) take(time.Time) {}

// How fast a signal falls when a start has ended, nobody knows beforehand.
func (*signalLimit) interval(time.Duration) (time.Duration, bool)         { return 0, false }
func (*signalLimit) outlook(time.Time, view) (starts float64, known bool) { return 0, false }

// opensAtLocked gives when a limit on signals opens by itself if none is measured anew.
func (l *Limiter) opensAtLocked(held Held) time.Time {
	switch held.Reason {
	case CPULoad, IOLoad, LoadAverage:
		return l.signals[held.Signal].To.Add(readingKept + 1)
	case Pressure:
		at := l.signals[held.Signal].To
		if cpu := l.signals[SignalCPU].To; held.Signal == SignalCPUPressure && cpu.Before(at) && l.settings.Pressure.minUtilization() > 0 {
			at = cpu
		}
		return at.Add(readingKept + 1)
	default:
		return time.Time{}
	}
}

// valueAt gives the value of a signal; false: nobody knows it.
func (s *Signals) valueAt(now time.Time, of Signal) (float64, bool) {
	r := &s[of]
	if r.To.IsZero() || r.Err != nil || now.Sub(r.To) > readingKept || math.IsNaN(r.Value) || math.IsInf(r.Value, 0) {
		return 0, false
	}
	return r.Value, true
}

// signalLimitsLocked gives the limits on signals that are set.
func (l *Limiter) signalLimitsLocked() (limits []limit) {
	for signal := range numSignals {
		s := &signalLimit{
			reason: Pressure, signal: signal, max: l.settings.Threshold(signal),
			readings: &l.signals, takes: &l.takes,
		}
		if s.max <= 0 {
			continue
		}
		switch signal {
		case SignalCPU:
			s.reason, s.increment = CPULoad, l.settings.CPU.Increment
		case SignalIOWait:
			s.reason, s.increment = IOLoad, l.settings.IOWait.Increment
		case SignalLoad:
			s.reason, s.increment = LoadAverage, l.settings.Load.Increment
		case SignalCPUPressure:
			s.minCPU = l.settings.Pressure.minUtilization()
		}
		limits = append(limits, s)
	}
	return limits
}

// takes are the times of the admissions of the last minute, in their order.
type takes struct{ times []time.Time }

func (t *takes) add(now time.Time) {
	t.forget(now)
	t.times = append(t.times, now)
}

func (t *takes) forget(now time.Time) {
	for len(t.times) > 0 && now.Sub(t.times[0]) > takesKept {
		t.times = t.times[1:]
	}
}

// after counts the admissions after a time. One at that time does not count.
func (t *takes) after(at time.Time) int {
	return len(t.times) - sort.Search(len(t.times), func(i int) bool { return t.times[i].After(at) })
}
