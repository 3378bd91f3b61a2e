package signals

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/crd/plain"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cores"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// mostMessage is how long the message of a BlindSignal may be, in bytes, by the CRD of PacemakerNode.
const mostMessage = 256

// The times between two samples.
const (
	// waitingEvery is for while a pod waits, and for the second sample.
	waitingEvery = 250 * time.Millisecond
	// startingEvery is for while a pod starts and none waits.
	startingEvery = 500 * time.Millisecond
	// idleEvery is for any other time.
	idleEvery = 10 * time.Second
)

// lastStandsFor is how long the last reading of a signal that cannot be measured stands for it. A limit without a
// reading is open, so a single failure would let all waiting pods pass.
const lastStandsFor = 3 * time.Second

// Limiter is the part of a [throttle.Limiter] that a [Monitor] uses.
type Limiter interface {
	Busy(now time.Time) (starting, waiting bool)
	Observe(now time.Time, s throttle.Signals)
}

// Monitor measures the node for a limiter. Make it with New. It is safe for concurrent use.
type Monitor struct {
	reader  reader
	limiter Limiter
	report  func(observe.Event)
	woken   chan struct{} // holds at most one
	refused atomic.Int64  // nanoseconds of CPU time that refusals of pods have taken

	// Only Run uses these: when the limiter got the latest signals, and whether all were measured.
	observed time.Time
	complete bool

	mu       sync.Mutex
	cores    cores.Cores            // guarded by mu: the CPUs that are measured
	changes  int                    // guarded by mu: of cores
	history  history                // guarded by mu
	settings throttle.Settings      // guarded by mu
	last     throttle.Signals       // guarded by mu: the last readings that were measured
	blind    [len(counters{})]error // guarded by mu: why signals that were reported cannot be measured
}

// New returns a Monitor that reads the host's /proc and /sys/fs/cgroup, which are at procRoot and cgroupRoot. It measures
// the CPUs that pods can use. New reads nothing. While procRoot does not exist, each signal has an error. The Monitor
// calls report when a signal that a limit needs cannot be measured, and when it can be measured again. report must not
// block.
func New(procRoot, cgroupRoot string, pods cores.Cores, l Limiter, report func(observe.Event)) *Monitor {
	return &Monitor{
		reader: newReader(procRoot, cgroupRoot), cores: pods, limiter: l, report: report, woken: make(chan struct{}, 1),
		history: history{window: defaultWindow},
	}
}

// SetCores changes which CPUs are measured. Readings span the time from then on.
func (m *Monitor) SetCores(pods cores.Cores) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cores, m.history.n = pods, 0
	m.changes++
}

// Prepare must be called before settings come into force. Readings span the window from then on; it must be above zero.
// A limit whose signal was never measured is open, and every waiting pod would pass it. So Prepare measures before the
// first such limit, which may take 250 ms.
func (m *Monitor) Prepare(settings throttle.Settings, window time.Duration) {
	m.mu.Lock()
	begins := !watchesAny(m.settings) && watchesAny(settings)
	m.settings, m.history.window = settings, window
	m.mu.Unlock()
	if begins {
		m.observe(time.Now(), m.Measure())
	}
}

// watchesAny reports whether a limit needs signals.
func watchesAny(s throttle.Settings) bool {
	for i := range len(counters{}) {
		if s.Watches(throttle.Signal(i)) {
			return true
		}
	}
	return false
}

// Wake makes Run look at the limiter. Call it when a pod may wait or start. It is cheap and does not block.
func (m *Monitor) Wake() {
	select {
	case m.woken <- struct{}{}:
	default: // Run is about to look
	}
}

// Run measures for the limiter until ctx ends, and returns nil. While no limit needs signals, it takes no sample. Only
// one call may run at a time.
func (m *Monitor) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-m.woken:
		case <-timer.C:
		}
		if wait := m.step(time.Now()); wait > 0 {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
	}
}

// step takes a sample if one is due, and returns the time until the next step, or zero if the next step waits for Wake.
func (m *Monitor) step(now time.Time) time.Duration {
	every := m.interval(now)
	if every == 0 {
		return 0
	}
	if wait := every - now.Sub(m.observed); wait > 0 {
		return wait
	}
	at, signals := m.sample()
	m.observed, m.complete = at, measured(signals)
	m.observe(at, signals)
	if !m.complete {
		return waitingEvery
	}
	return every
}

// interval returns the time between two samples for the limiter, or zero if no limit needs one.
func (m *Monitor) interval(now time.Time) time.Duration {
	starting, waiting := m.limiter.Busy(now)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case !watchesAny(m.settings):
		return 0
	case waiting || !m.complete:
		return waitingEvery
	case starting:
		return startingEvery
	default:
		return idleEvery
	}
}

// Refused notes that a refusal of a waiting pod takes so much CPU time. It is safe for concurrent use.
func (m *Monitor) Refused(cpu time.Duration) { m.refused.Add(int64(cpu)) }

// Measure takes a sample and returns the signals of now, also those that no limit needs. The limiter does not get them.
// If there is no sample to compare with, Measure takes a second one, which blocks for 250 ms.
func (m *Monitor) Measure() throttle.Signals {
	_, signals := m.sample()
	if !measured(signals) {
		time.Sleep(waitingEvery)
		_, signals = m.sample()
	}
	return signals
}

func (m *Monitor) sample() (time.Time, throttle.Signals) {
	m.mu.Lock()
	pods, changes := m.cores, m.changes
	m.mu.Unlock()
	now := m.reader.read(pods)
	now.refused = time.Duration(m.refused.Load())
	m.mu.Lock()
	defer m.mu.Unlock()
	if changes != m.changes { // the counters are of other CPUs
		return now.at, throttle.Signals{}
	}
	return now.at, m.history.add(now)
}

// measured reports whether each signal has a value or an error.
func measured(signals throttle.Signals) bool {
	for _, r := range signals {
		if r.Err == nil && r.To.IsZero() {
			return false
		}
	}
	return true
}

// observe passes signals to the limiter, and reports those that cannot be measured any more, or can again.
func (m *Monitor) observe(now time.Time, signals throttle.Signals) {
	signals = m.withLast(now, signals)
	m.limiter.Observe(now, signals)
	for _, e := range m.update(signals) {
		m.report(e)
	}
}

// withLast returns the signals, with the last reading of each that was measured just before and cannot be measured now.
func (m *Monitor) withLast(now time.Time, signals throttle.Signals) throttle.Signals {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, r := range signals {
		if r.Err == nil && !r.To.IsZero() {
			m.last[i] = r
		} else if now.Sub(m.last[i].To) < lastStandsFor {
			signals[i] = m.last[i]
		}
	}
	return signals
}

// update notes which signals can be measured, and returns what is new about limits in force.
func (m *Monitor) update(signals throttle.Signals) (news []observe.SignalBlind) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, r := range signals {
		signal, was := throttle.Signal(i), m.blind[i]
		switch blind, measured := missed(m.settings, signal); {
		case !m.settings.Watches(signal):
			m.blind[i] = nil
		case r.Err != nil && was == nil:
			m.blind[i] = r.Err
			news = append(news, observe.SignalBlind{Signal: signal, Effect: blind, Why: r.Err})
		case r.Err == nil && !r.To.IsZero() && was != nil:
			m.blind[i] = nil
			news = append(news, observe.SignalBlind{Signal: signal, Effect: measured})
		}
	}
	return news
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
	settings, blind := m.settings, m.blind
	m.mu.Unlock()
	for i, why := range blind {
		if signal := throttle.Signal(i); why != nil && settings.Watches(signal) { // else a limit needed it until just now
			all = append(all, v1alpha1.BlindSignal{Signal: signal.String(), Message: plain.Line(why.Error(), mostMessage)})
		}
	}
	return all
}
