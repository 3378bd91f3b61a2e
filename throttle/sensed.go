package throttle

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
)

// Observe takes what the sensors measured by now, lets the adaptive limit follow
// it, and admits whoever may start by that.
func (l *Limiter) Observe(now time.Time, s Signals) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now = l.clockLocked(now)
	l.signals = s
	l.takes.forget(now)
	if l.adaptive != nil {
		l.adaptive.Observe(l.sampleLocked(now))
		l.gaveBack = 0
		l.setMostLocked()
	}
	l.admitLocked(now)
	if l.present.len() > 0 {
		l.changedLocked() // another limit may hold, and know until when
	}
}

// sampleLocked gives what the adaptive limit is fed with.
func (l *Limiter) sampleLocked(now time.Time) adaptive.Sample {
	s := adaptive.Sample{At: now, Starting: l.starting.len(), Ended: l.gaveBack}
	if l.othersAllowLocked(now) {
		s.Waiting = l.present.len()
	}
	s.CPU, s.CPUKnown = l.signals.valueAt(now, SignalCPU)
	s.CPUPressure, s.CPUPressureKnown = l.signals.valueAt(now, SignalCPUPressure)
	s.IOPressure, s.IOPressureKnown = l.signals.valueAt(now, SignalIOPressure)
	for _, signal := range []Signal{SignalIOPressure, SignalCPUPressure, SignalCPU} {
		if _, known := l.signals.valueAt(now, signal); known {
			r := l.signals[signal]
			s.At, s.Window = r.To, r.To.Sub(r.From)
		}
	}
	return s
}

// setAdaptiveLocked makes, changes or drops the adaptive limit as the settings say.
func (l *Limiter) setAdaptiveLocked() {
	switch s := l.settings.Adaptive; {
	case s == nil:
		l.adaptive = nil
	case l.adaptive == nil:
		l.adaptive = adaptive.New(*s)
	default:
		l.adaptive.Configure(*s)
	}
}

// setMostLocked sets how many may start at a time: as many as set, or as found, the
// less of both.
func (l *Limiter) setMostLocked() {
	was := l.slots.most
	l.slots.most, l.slots.reach = max(0, l.settings.MaxConcurrent), 0
	if l.adaptive != nil {
		l.slots.reach = l.adaptive.Reach()
		if l.settings.MaxConcurrent > 0 {
			l.slots.reach = min(l.slots.reach, l.settings.MaxConcurrent)
		}
		if found := max(1, l.adaptive.Limit()); l.slots.most == 0 || found < l.slots.most {
			l.slots.most = found
		}
	}
	if l.slots.most != was {
		l.repayLocked()
	}
}
