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

// sensors measure the node for the limiter, and tell once of a signal that a limit
// needs and that cannot be measured, and once when it can be again. Safe for
// concurrent use.
type sensors struct {
	limiter *throttle.Limiter
	sampler *sensor.Sampler
	log     logrus.FieldLogger
	// notice writes an event on the node; it must not block.
	notice func(kind, reason, message string)

	mu       sync.Mutex
	settings throttle.Settings          // guarded by mu
	blind    map[throttle.Signal]string // guarded by mu: the watched signals that were told of, and why
}

func newSensors(o Options, l *throttle.Limiter, notice func(kind, reason, message string)) *sensors {
	s := &sensors{limiter: l, log: o.Log, notice: notice, blind: map[throttle.Signal]string{}}
	s.sampler = sensor.New(o.ProcRoot, s)
	return s
}

// prepare makes ready for settings that are to be in force next. A limit whose
// signal was never measured is open, and all who wait for this daemon would pass: so
// where the first such limit comes, prepare measures, which may take 250 ms.
func (s *sensors) prepare(settings throttle.Settings, window time.Duration) {
	watched := s.Watched()
	s.mu.Lock()
	s.settings = settings
	s.mu.Unlock()
	s.sampler.SetWindow(window)
	if !watched && s.Watched() {
		s.Observe(time.Now(), s.now())
	}
}

// Watched implements sensor.Limiter.
func (s *sensors) Watched() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range len(throttle.Signals{}) {
		if s.settings.Watches(throttle.Signal(i)) {
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
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range signals {
		s.noteLocked(throttle.Signal(i), r)
	}
}

// noteLocked logs that a limit's signal went blind, or is measured again. s.mu must
// be held.
func (s *sensors) noteLocked(signal throttle.Signal, r throttle.Reading) {
	_, told := s.blind[signal]
	log := s.log.WithField("signal", signal.String())
	blind, measured := missed(s.settings, signal)
	switch {
	case !s.settings.Watches(signal):
		delete(s.blind, signal)
	case r.Err != nil && !told:
		s.blind[signal] = r.Err.Error()
		log.WithError(r.Err).Warn("a signal that a limit needs cannot be measured: " + blind)
		s.notice(corev1.EventTypeWarning, "SignalBlind", "The signal "+signal.String()+" cannot be measured, "+blind+": "+r.Err.Error())
	case r.Err == nil && !r.To.IsZero() && told:
		delete(s.blind, signal)
		log.Info("a signal is measured again: " + measured)
		s.notice(corev1.EventTypeNormal, "SignalMeasured", "The signal "+signal.String()+" is measured again, "+measured)
	}
}

// missed says what it means that a watched signal cannot be measured, and that it can
// be again.
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

// cannotMeasure returns the watched signals that cannot be measured, in the order of
// [throttle.Signal], with what was told of each.
func (s *sensors) cannotMeasure() (all []v1alpha1.BlindSignal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, signal := range slices.Sorted(maps.Keys(s.blind)) {
		if !s.settings.Watches(signal) {
			continue // a limit needed it until just now
		}
		all = append(all, v1alpha1.BlindSignal{Signal: signal.String(), Message: observe.Cut(s.blind[signal], mostBlind)})
	}
	return all
}

// now returns the signals of this moment, whether or not any limit needs them. It may
// take 250 ms.
func (s *sensors) now() throttle.Signals { return s.sampler.Measure(context.Background()) }
