package plugin

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/sensor"
)

// sensors measure the node for the limiter. They report when a signal that a limit needs cannot be measured, and when it
// is measured again. They are safe for concurrent use.
type sensors struct {
	limiter *throttle.Limiter
	sampler *sensor.Sampler
	log     logrus.FieldLogger
	// writeEvent writes an event on the node; it must not block.
	writeEvent func(kind, reason, message string)

	mu       sync.Mutex
	settings throttle.Settings          // guarded by mu
	blind    map[throttle.Signal]string // guarded by mu: why signals that were reported cannot be measured
}

func newSensors(o Options, l *throttle.Limiter, writeEvent func(kind, reason, message string)) *sensors {
	s := &sensors{limiter: l, log: o.Log, writeEvent: writeEvent, blind: map[throttle.Signal]string{}}
	s.sampler = sensor.New(o.ProcRoot, s)
	return s
}

// prepare is called before settings come into force. A limit whose signal was never measured is open, and every waiting
// pod would pass it. So prepare measures before the first such limit, which may take 250 ms.
func (s *sensors) prepare(settings throttle.Settings, window time.Duration) {
	watched := s.Watched()
	s.mu.Lock()
	s.settings = settings
	s.mu.Unlock()
	s.sampler.SetWindow(window)
	if !watched && s.Watched() {
		s.Observe(time.Now(), s.measure())
	}
}

// Watched implements sensor.Limiter.
func (s *sensors) Watched() bool {
	s.mu.Lock()
	settings := s.settings
	s.mu.Unlock()
	for i := range len(throttle.Signals{}) {
		if settings.Watches(throttle.Signal(i)) {
			return true
		}
	}
	return false
}

// Busy implements sensor.Limiter.
func (s *sensors) Busy(now time.Time) (starting, waiting bool) { return s.limiter.Busy(now) }

// Observe implements sensor.Limiter.
func (s *sensors) Observe(now time.Time, signals throttle.Signals) {
	s.limiter.Observe(now, signals)
	for i, r := range signals {
		signal := throttle.Signal(i)
		settings, isNew := s.update(signal, r)
		if !isNew {
			continue
		}
		log := s.log.WithField("signal", signal.String())
		blind, measured := missed(settings, signal)
		if r.Err != nil {
			log.WithError(r.Err).Warnf("the signal %s cannot be measured: %s", signal, blind)
			s.writeEvent(corev1.EventTypeWarning, "SignalBlind", "The signal "+signal.String()+" cannot be measured, "+blind+": "+r.Err.Error())
		} else {
			log.Infof("the signal %s is measured again: %s", signal, measured)
			s.writeEvent(corev1.EventTypeNormal, "SignalMeasured", "The signal "+signal.String()+" is measured again, "+measured)
		}
	}
}

// update notes whether a signal can be measured, and reports whether that is news about a limit in force.
func (s *sensors) update(signal throttle.Signal, r throttle.Reading) (settings throttle.Settings, isNew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, wasBlind := s.blind[signal]
	switch {
	case !s.settings.Watches(signal):
		delete(s.blind, signal)
	case r.Err != nil && !wasBlind:
		s.blind[signal], isNew = r.Err.Error(), true
	case r.Err == nil && !r.To.IsZero() && wasBlind:
		delete(s.blind, signal)
		isNew = true
	}
	return s.settings, isNew
}

// missed returns what it means that a watched signal cannot be measured, and that it is measured again.
func missed(s throttle.Settings, signal throttle.Signal) (blind, measured string) {
	switch {
	case s.Signals[signal].Max > 0:
		return "its limit is open", "its limit holds"
	case signal == throttle.SignalCPU && s.Signals[throttle.SignalCPUPressure].Max > 0:
		return "the limit on CPU pressure is open", "the limit on CPU pressure holds"
	default:
		return "the adaptive limit does without it", "the adaptive limit follows it"
	}
}

// cannotMeasure returns the watched signals that cannot be measured, in the order of [throttle.Signal], and why.
func (s *sensors) cannotMeasure() (all []v1alpha1.BlindSignal) {
	s.mu.Lock()
	settings, blind := s.settings, maps.Clone(s.blind)
	s.mu.Unlock()
	for _, signal := range slices.Sorted(maps.Keys(blind)) {
		if !settings.Watches(signal) {
			continue // a limit needed it until just now
		}
		all = append(all, v1alpha1.BlindSignal{Signal: signal.String(), Message: observe.Cut(blind[signal], mostBlind)})
	}
	return all
}

// measure measures all signals, also those that no limit needs. It may take 250 ms.
func (s *sensors) measure() throttle.Signals { return s.sampler.Measure(context.Background()) }
