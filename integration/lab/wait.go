package lab

import (
	"context"
	"fmt"
	"time"
)

// tailLines is the number of log lines that an error shows.
const tailLines = 15

// startTimeout bounds every wait for an expected event.
const startTimeout = 3 * time.Minute

// await calls cond until it returns nil. It fails if the service or ctx ends first, with an error
// that shows the service's last lines.
func (s *Service) await(ctx context.Context, what string, cond func(ctx context.Context) error) error {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var last error
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		if last = cond(ctx); last == nil {
			return nil
		}
		p := s.process()
		if p == nil {
			return fmt.Errorf("waiting for %s: %s was not started", what, s.spec.Name)
		}
		select {
		case <-p.exited:
			return fmt.Errorf("waiting for %s: %s ended with exit code %d; its last lines:\n%s",
				what, s.spec.Name, p.code, s.Tail(tailLines))
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: gave up after %s (%w): %w; last lines of %s:\n%s",
				what, time.Since(start).Round(time.Second), ctx.Err(), last, s.spec.Name, s.Tail(tailLines))
		case <-time.After(pause):
		}
	}
}
