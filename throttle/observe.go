package throttle

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
)

// Observe takes what the sensors measured by now, lets the adaptive limit follow it, and
// admits those that may start by that.
func (l *Limiter) Observe(now time.Time, s Signals) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now = l.clockLocked(now)
	l.signals = s
	l.debts.forget(now)
	l.paced.forget(now)
	if l.adaptive != nil {
		l.adaptive.Observe(l.sampleLocked(now))
		l.setLimitLocked()
	}
	l.admitLocked(now)
	if l.couldStartLocked() > 0 {
		l.changedLocked() // another limit may hold, and know until when
	}
}

// sampleLocked gives what the adaptive limit is fed with. Starts that are exempt are not
// counted, with a slot or without: they are many, at once, and mostly light, so that the
// loop would infer from them that the node bears many times as many of those that wait.
func (l *Limiter) sampleLocked(now time.Time) adaptive.Sample {
	s := adaptive.Sample{At: now, Queued: len(l.queue.arrivals), Made: l.taught.made, Lost: l.taught.lost}
	for _, t := range l.inFlight {
		if t.slot && t.admission != Exempt {
			s.Starting++
		}
	}
	if _, open := l.checkOthersLocked(now); open {
		s.Waiting = l.couldStartLocked()
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

// couldStartLocked gives how many of those with a waiter could start now if only groups
// held them.
func (l *Limiter) couldStartLocked() (n int) {
	s := l.scanLocked()
	for _, t := range l.orderLocked() {
		if t.waiters == 0 {
			continue
		}
		if h := s.holds(t); h.in == nil {
			s.take(t)
			n++
		}
	}
	return n
}

// learnedKept is how long the adaptive limit of an earlier setting is as good as if it had
// been in force all the time.
const learnedKept = time.Minute

// learned is the adaptive limit of an earlier setting.
type learned struct {
	from  *adaptive.Controller // nil: there is none
	until time.Time            // when it was switched off
}

// setAdaptiveLocked makes, changes or drops the adaptive limit as the settings say. What
// it learned is kept over a time without it: after a short one, all; after a longer one,
// other pods start on a node that nobody watched, and of that limit and the one to begin
// with, the less counts.
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

// setLimitLocked sets how many may start at a time: as many as set, or as found, the less
// of both.
func (l *Limiter) setLimitLocked() {
	was := l.limit
	l.limit, l.limitSoon = max(0, l.settings.MaxConcurrent), 0
	if l.adaptive != nil {
		l.limitSoon = l.adaptive.Reach()
		if l.settings.MaxConcurrent > 0 {
			l.limitSoon = min(l.limitSoon, l.settings.MaxConcurrent)
		}
		if found := max(1, l.adaptive.Limit()); l.limit == 0 || found < l.limit {
			l.limit = found
		}
	}
	if l.limit != was {
		l.repayLocked()
	}
}

// lostAfter is how long a start has to have lasted to be lost when it breaks off. One that
// breaks off earlier does so by itself: a probe has to fail several times before it kills.
const lostAfter = 10 * time.Second

// taught is how the starts ended, as the adaptive limit is told of it. One that is Stuck
// says nothing of what a start demands: its pod may have waited for something all the time.
type taught struct {
	made int       // those that say how long starts take
	lost time.Time // the latest admission of one that was lost; zero: none was
}

func (y *taught) add(admitted time.Time, took time.Duration, reason Reason) {
	switch {
	case reason.tellsPace():
		y.made++
	case reason.breaksOff() && took >= lostAfter:
		y.lost = later(y.lost, admitted)
	}
}
