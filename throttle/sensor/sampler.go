package sensor

import (
	"context"
	"sync"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// DefaultWindow is the time that a reading spans.
const DefaultWindow = 2 * time.Second

// How often a sample is taken.
const (
	// waitingEvery, while somebody waits; also the time to the second sample.
	waitingEvery = 250 * time.Millisecond
	// startingEvery, while something starts and nobody waits.
	startingEvery = 500 * time.Millisecond
	// idleEvery, while neither.
	idleEvery = 10 * time.Second
)

// Limiter is what a Sampler measures for.
type Limiter interface {
	// Watched tells whether any limit asks for signals.
	Watched() bool
	// Busy tells whether anything starts or waits now.
	Busy(now time.Time) (starting, waiting bool)
	// Observe takes the signals of now.
	Observe(now time.Time, s throttle.Signals)
}

// Sampler measures the signals of a node, for a limiter and for people. Make one
// with New. Its methods are safe for concurrent use.
type Sampler struct {
	limiter Limiter
	reader  reader
	woken   chan struct{} // holds at most one

	// Run's own: when the limiter was told last, and whether of every signal.
	observed time.Time
	complete bool

	mu      sync.Mutex
	history history // guarded by mu
}

// New gives a sampler that reads the host's /proc, which is at root. It reads nothing
// yet, and a root that is not there is no error: the signals are blind as long as that is so.
func New(root string, l Limiter) *Sampler {
	return &Sampler{
		limiter: l, reader: newReader(root), woken: make(chan struct{}, 1),
		history: history{window: DefaultWindow},
	}
}

// SetWindow changes the time that a reading spans, from now on; it is above zero. What was
// measured so far is kept.
func (s *Sampler) SetWindow(window time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history.window = window
}

// Wake makes Run look at the limiter. Call it when something may wait or start;
// it costs next to nothing and does not block.
func (s *Sampler) Wake() {
	select {
	case s.woken <- struct{}{}:
	default: // it is about to
	}
}

// Run feeds the limiter until ctx ends, and gives nil then. While no limit asks for
// signals it takes no sample and sets no timer. Call it once.
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

// step takes a sample if one is due, and gives the time to the next look; zero: not
// before Wake.
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

// interval is the time between two samples for the limiter.
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

// Measure takes a sample and gives the signals of now, whether or not any limit asks
// for them. The limiter is told nothing. Where the sample has nothing to be compared
// with, it takes a second one, and blocks for 250 ms, less if ctx ends.
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
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.reader.read()
	return m.at, s.history.add(m)
}

// measured tells whether every signal has a value, or is blind.
func measured(signals throttle.Signals) bool {
	for _, r := range signals {
		if r.Err == nil && r.To.IsZero() {
			return false
		}
	}
	return true
}
