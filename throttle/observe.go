package throttle

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// lostAfter is how long a start has to have lasted to be lost when it breaks off. One that
// breaks off earlier does so by itself: a probe has to fail several times before it kills.
const lostAfter = 10 * time.Second

// Observe takes what the sensors measured by now, lets the adaptive limit follow it, and
// admits those that may start by that.
func (l *Limiter) Observe(now time.Time, s Signals) {
	now = l.lock(now)
	defer l.mu.Unlock()
	l.signals = s
	l.debts.forget(now)
	l.admissions.forget(now)
	if l.adaptive != nil {
		l.adaptive.Observe(l.sampleLocked(now))
		l.setLimitLocked()
	}
	l.admitLocked(now)
	if l.couldStartLocked((*Ticket).waits) > 0 {
		l.changedLocked() // another limit may hold, and know until when
	}
}

// sampleLocked gives what the adaptive limit is fed with. Starts that are exempt are not
// counted, with a slot or without: they are many, at once, and mostly light, so that the
// loop would infer from them that the node bears many times as many of those that wait.
// Nor are those that ended Stuck: they may have waited for something all the time.
func (l *Limiter) sampleLocked(now time.Time) adaptive.Sample {
	s := adaptive.Sample{At: now, Queued: len(l.queue.arrivals), Made: l.took.n, Lost: l.lost}
	for _, t := range l.inFlight {
		if t.slot && t.admission != reasons.Exempt {
			s.Starting++
		}
	}
	if l.heldByOthersLocked(now).none() {
		s.Waiting = l.couldStartLocked((*Ticket).waits)
	}
	s.CPU, s.CPUKnown = l.signals.valueAt(now, SignalCPU)
	s.CPUPressure, s.CPUPressureKnown = l.signals.valueAt(now, SignalCPUPressure)
	s.IOPressure, s.IOPressureKnown = l.signals.valueAt(now, SignalIOPressure)
	for _, signal := range [...]Signal{SignalIOPressure, SignalCPUPressure, SignalCPU} {
		if _, known := l.signals.valueAt(now, signal); known {
			r := l.signals[signal]
			s.At, s.Window = r.To, r.To.Sub(r.From)
		}
	}
	return s
}

// setAdaptiveLocked makes, changes or drops the adaptive limit as the settings say.
func (l *Limiter) setAdaptiveLocked() {
	s := l.settings.Adaptive
	switch {
	case s == nil:
		l.adaptive = nil
	case l.adaptive == nil:
		l.adaptive = adaptive.New(*s)
	default:
		l.adaptive.Configure(*s)
	}
}

// setLimitLocked sets how many may start at a time: as many as set, or as found, the less
// of both.
func (l *Limiter) setLimitLocked() {
	was := l.limit
	l.limit = max(0, l.settings.MaxConcurrent)
	l.limitSoon = l.limit
	if l.adaptive != nil {
		found, reach := max(1, l.adaptive.Limit()), l.adaptive.Reach()
		if l.limit > 0 {
			found, reach = min(found, l.limit), min(reach, l.limit)
		}
		l.limit, l.limitSoon = found, max(found, reach)
	}
	if l.limit != was {
		l.repayLocked()
	}
}
