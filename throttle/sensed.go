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
	l.paced.forget(now)
	if l.adaptive != nil {
		l.adaptive.Observe(l.sampleLocked(now))
		l.setMostLocked()
	}
	l.admitLocked(now)
	if l.presentLocked() > 0 {
		l.changedLocked() // another limit may hold, and know until when
	}
}

// sampleLocked gives what the adaptive limit is fed with. Starts without a slot are
// not counted: those that are exempt are many, at once, and mostly light, so that the
// loop would infer from them that the node bears many times as many of those that wait.
func (l *Limiter) sampleLocked(now time.Time) adaptive.Sample {
	s := adaptive.Sample{
		At: now, Starting: l.starting.len(), Queued: l.waitingLocked(), Made: l.tally.made, Lost: l.tally.lost,
	}
	if l.othersAllowLocked(now) {
		s.Waiting = l.presentFreeLocked()
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

// learnedKept is how long the adaptive limit of an earlier setting is as good as if
// it had been in force all the time.
const learnedKept = time.Minute

// learned is the adaptive limit of an earlier setting.
type learned struct {
	from  *adaptive.Controller // nil: there is none
	until time.Time            // when it was switched off
}

// setAdaptiveLocked makes, changes or drops the adaptive limit as the settings say.
// What it learned is kept over a time without it: after a short one, all; after a
// longer one, other pods start on a node that nobody watched, and of that limit and
// the one to begin with, the less counts.
func (l *Limiter) setAdaptiveLocked(now time.Time) {
	s := l.settings.Adaptive
	switch {
	case s == nil && l.adaptive != nil:
		l.learned, l.adaptive = learned{l.adaptive, now}, nil
	case s == nil:
	case l.adaptive != nil:
		l.adaptive.Configure(*s)
	default:
		l.adaptive = adaptive.New(*s)
		if old := l.learned.from; old != nil {
			old.Configure(*s)
			if now.Sub(l.learned.until) < learnedKept || old.Limit() < l.adaptive.Limit() {
				l.adaptive = old
			}
		}
		l.learned = learned{}
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
