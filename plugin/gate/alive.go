package gate

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// pulse wakes all its listeners with each beat. Make it with newPulse.
type pulse struct {
	listening atomic.Int32

	mu   sync.Mutex
	next chan struct{} // closed with the next beat
}

func newPulse() *pulse { return &pulse{next: make(chan struct{})} }

// nextBeat returns a channel that is closed with the next beat.
func (p *pulse) nextBeat() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.next
}

func (p *pulse) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.next)
	p.next = make(chan struct{})
}

// keepAlive sends an alive line to all waiting hooks every few seconds, as long as the backend
// decides starts.
func (s *Server) keepAlive(ctx context.Context) {
	tick := time.Tick(s.aliveEvery)
	for silent := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		if s.alive.listening.Load() == 0 {
			continue
		}
		soon, cancel := context.WithTimeout(ctx, s.aliveEvery)
		var err error
		if panicked := s.caught(func() { err = s.backend.Alive(soon) }); panicked != nil {
			err = panicked
		}
		cancel()
		if err == nil {
			s.alive.beat()
		}
		if (err != nil) != silent && ctx.Err() == nil {
			silent = err != nil
			if silent {
				s.log.WithError(err).Error("the daemon admits no pods (its loop is stuck); waiting pods will start one by one")
			} else {
				s.log.Info("the daemon admits pods again")
			}
		}
	}
}
