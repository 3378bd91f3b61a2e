package sensor

import (
	"context"
	"sync"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// defaultWindow is the time that a reading spans, unless SetWindow changes it.
const defaultWindow = 2 * time.Second

// The times between two samples.
const (
	// waitingEvery is for while a pod waits, and for the second sample.
	waitingEvery = 250 * time.Millisecond
	// startingEvery is for while a pod starts and none waits.
	startingEvery = 500 * time.Millisecond
	// idleEvery is for any other time.
	idleEvery = 10 * time.Second
)

// Limiter is the limiter for which a Sampler measures.
type Limiter interface {
	// Watched reports whether a limit needs signals.
	Watched() bool
	// Busy reports whether a pod starts, and whether one waits.
	Busy(now time.Time) (starting, waiting bool)
	// Observe gets the signals of now.
	Observe(now time.Time, s throttle.Signals)
}

// Sampler measures the signals of a node. Make one with New. Its methods are safe for concurrent use.
type Sampler struct {
	limiter Limiter
	reader  reader
	woken   chan struct{} // holds at most one

	// Only Run uses these: when the limiter got the latest signals, and whether all were measured.
	observed time.Time
	complete bool

	mu      sync.Mutex
	history history // guarded by mu
}

// New returns a sampler that reads the host's /proc, which is at root. It reads nothing yet. While
// root does not exist, each signal has an error.
func New(root string, l Limiter) *Sampler {
	return &Sampler{
		limiter: l, reader: newReader(root), woken: make(chan struct{}, 1),
		history: history{window: defaultWindow},
	}
}

// SetWindow changes the time that a reading spans; it must be above zero. Samples are kept.
func (s *Sampler) SetWindow(window time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history.window = window
}

// Wake makes Run look at the limiter. Call it when a pod may wait or start. It is cheap and does not
// block.
func (s *Sampler) Wake() {
	select {
	case s.woken <- struct{}{}:
	default: // Run is about to look
	}
}

// Run measures for the limiter until ctx ends, and returns nil. While no limit needs signals, it takes
// no sample. Call it once.
func (s *Sampler) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.woken:
		case <-timer.C:
		}
		if wait := s.step(time.Now()); wait > 0 {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
	}
}

// step takes a sample if one is due, and returns the time until the next step; zero: not before Wake.
func (s *Sampler) step(now time.Time) time.Duration {
	if !s.limiter.Watched() {
		return 0
	}
	if wait := s.interval(now) - now.Sub(s.observed); wait > 0 && !s.observed.IsZero() {
		return wait
	}
	at, signals := s.sample()
	s.observed, s.complete = at, measured(signals)
	s.limiter.Observe(at, signals)
	return s.interval(now)
}

// interval returns the time between two samples for the limiter.
func (s *Sampler) interval(now time.Time) time.Duration {
	starting, waiting := s.limiter.Busy(now)
	switch {
	case waiting || !s.complete:
		return waitingEvery
	case starting:
		return startingEvery
	default:
		return idleEvery
	}
}

// Measure takes a sample and returns the signals of now, even if no limit needs them. The limiter does
// not get them. If there is no sample to compare with, Measure takes a second one: it blocks for 250 ms,
// or until ctx ends.
func (s *Sampler) Measure(ctx context.Context) throttle.Signals {
	_, signals := s.sample()
	if measured(signals) {
		return signals
	}
	again := time.NewTimer(waitingEvery)
	defer again.Stop()
	select {
	case <-ctx.Done():
	case <-again.C:
		_, signals = s.sample()
	}
	return signals
}

func (s *Sampler) sample() (time.Time, throttle.Signals) {
	m := s.reader.read()
	s.mu.Lock()
	defer s.mu.Unlock()
	return m.at, s.history.add(m)
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
