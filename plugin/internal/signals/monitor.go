// Package signals measures the node for the limiter, and reports when a signal that a limit needs cannot be measured, and
// when it is measured again.
package signals

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/sensor"
)

// mostMessage bounds the message of a BlindSignal, in bytes: it is the bound in the CRD of PacemakerNode.
const mostMessage = 256

// Limiter is the part of a [throttle.Limiter] that a [Monitor] uses.
type Limiter interface {
	Busy(now time.Time) (starting, waiting bool)
	Observe(now time.Time, s throttle.Signals)
}

// Monitor measures the node for a limiter. Run and Wake are those of its Sampler, which calls Watched, Busy and Observe.
// It is safe for concurrent use. Make one with New.
type Monitor struct {
	*sensor.Sampler
	limiter Limiter
	report  func(observe.Event)

	mu       sync.Mutex
	settings throttle.Settings          // guarded by mu
	blind    map[throttle.Signal]string // guarded by mu: why signals that were reported cannot be measured
}

// New returns a Monitor that reads the files below procRoot, such as /proc. It calls report for each change, which must
// not block.
func New(procRoot string, l Limiter, report func(observe.Event)) *Monitor {
	m := &Monitor{limiter: l, report: report, blind: map[throttle.Signal]string{}}
	m.Sampler = sensor.New(procRoot, m)
	return m
}

// Prepare must be called before settings come into force. A limit whose signal was never measured is open, and every waiting
// pod would pass it. So Prepare measures before the first such limit, which may take 250 ms.
func (m *Monitor) Prepare(settings throttle.Settings, window time.Duration) {
	watched := m.Watched()
	m.mu.Lock()
	m.settings = settings
	m.mu.Unlock()
	m.SetWindow(window)
	if !watched && m.Watched() {
		m.Observe(time.Now(), m.Measure())
	}
}

// Watched implements sensor.Limiter.
func (m *Monitor) Watched() bool {
	m.mu.Lock()
	settings := m.settings
	m.mu.Unlock()
	for i := range len(throttle.Signals{}) {
		if settings.Watches(throttle.Signal(i)) {
			return true
		}
	}
	return false
}

// Busy implements sensor.Limiter.
func (m *Monitor) Busy(now time.Time) (starting, waiting bool) { return m.limiter.Busy(now) }

// Observe implements sensor.Limiter.
func (m *Monitor) Observe(now time.Time, signals throttle.Signals) {
	m.limiter.Observe(now, signals)
	for i, r := range signals {
		signal := throttle.Signal(i)
		settings, isNew := m.update(signal, r)
		if !isNew {
			continue
		}
		blind, measured := missed(settings, signal)
		e := observe.SignalBlind{Signal: signal, Effect: blind, Why: r.Err}
		if r.Err == nil {
			e.Effect = measured
		}
		m.report(e)
	}
}

// update notes whether a signal can be measured, and reports whether that is news about a limit in force.
func (m *Monitor) update(signal throttle.Signal, r throttle.Reading) (settings throttle.Settings, isNew bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, wasBlind := m.blind[signal]
	switch {
	case !m.settings.Watches(signal):
		delete(m.blind, signal)
	case r.Err != nil && !wasBlind:
		m.blind[signal], isNew = r.Err.Error(), true
	case r.Err == nil && !r.To.IsZero() && wasBlind:
		delete(m.blind, signal)
		isNew = true
	}
	return m.settings, isNew
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

// Blind returns the watched signals that cannot be measured, in the order of [throttle.Signal], and why.
func (m *Monitor) Blind() (all []v1alpha1.BlindSignal) {
	m.mu.Lock()
	settings, blind := m.settings, maps.Clone(m.blind)
	m.mu.Unlock()
	for _, signal := range slices.Sorted(maps.Keys(blind)) {
		if !settings.Watches(signal) {
			continue // a limit needed it until just now
		}
		all = append(all, v1alpha1.BlindSignal{Signal: signal.String(), Message: observe.Cut(blind[signal], mostMessage)})
	}
	return all
}

// Measure measures all signals, also those that no limit needs. It may take 250 ms.
func (m *Monitor) Measure() throttle.Signals { return m.Sampler.Measure(context.Background()) }
