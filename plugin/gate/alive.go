package gate

import (
	"context"
	"sync"
	"time"
)

// pulse wakes all listeners each time that it beats. The zero value is
// ready for use.
type pulse struct {
	mu        sync.Mutex
	listening int
	next      chan struct{} // closed with the next beat
}

// listen returns a channel that is closed with the next beat. A listener calls
// leave at its end.
func (p *pulse) listen() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listening++
	if p.next == nil {
		p.next = make(chan struct{})
	}
	return p.next
}

// again returns the channel of the beat after the one that came.
func (p *pulse) again() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.next
}

func (p *pulse) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listening--
}

// heard reports whether there is a listener.
func (p *pulse) heard() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listening > 0
}

func (p *pulse) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next != nil {
		close(p.next)
	}
	p.next = make(chan struct{})
}

// keepAlive sends the hooks that wait a sign of life from time to time, as long as starts are
// decided.
func (s *Server) keepAlive(ctx context.Context) {
	ticker := time.NewTicker(s.aliveEvery)
	defer ticker.Stop()
	for silent := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if !s.alive.heard() {
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
				s.log.WithError(err).Error("the gate decides nothing: its hooks will leave one by one")
			} else {
				s.log.Info("the gate decides again")
			}
		}
	}
}
