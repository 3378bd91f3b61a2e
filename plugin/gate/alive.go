package gate

import (
	"context"
	"time"
)

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
		if s.waiting.Load() == 0 {
			continue
		}
		soon, cancel := context.WithTimeout(ctx, s.aliveEvery)
		err := s.caught(func() error { return s.backend.Alive(soon) })
		cancel()
		if err == nil {
			next := make(chan struct{})
			close(*s.beat.Swap(&next))
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
