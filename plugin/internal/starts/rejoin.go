package starts

import (
	"context"
	"time"

	"github.com/containerd/nri/pkg/api"
)

// oldHooks is the part of the ledger about the hooks that outlived an earlier daemon. They reconnect in any order. Until all
// have, the limiter is frozen: otherwise the first would take a free slot from another that has waited longer and
// reconnects a moment later.
type oldHooks struct {
	frozen  bool
	back    chan struct{}       // closed when no hook is missing
	missing map[string]struct{} // the containers that were made and have not started, whose hooks may wait; nil until they are known
}

// expect notes which containers' hooks may wait, the first time that the runtime lists its containers.
func (h *oldHooks) expect(ctrs []*api.Container) {
	if h.missing != nil {
		return
	}
	h.missing = map[string]struct{}{}
	for _, ctr := range ctrs {
		if ctr.GetState() == api.ContainerState_CONTAINER_CREATED {
			h.missing[ctr.GetId()] = struct{}{}
		}
	}
	if len(h.missing) == 0 {
		close(h.back)
	}
}

// isBack notes that the hook of a container reconnected, or never will: the container started, or is gone.
func (h *oldHooks) isBack(containerID string) {
	if _, is := h.missing[containerID]; !is {
		return
	}
	delete(h.missing, containerID)
	if len(h.missing) == 0 {
		close(h.back)
	}
}

// Freeze stops admissions while hooks that outlived an earlier daemon are missing. Call it once the runtime has
// listed its containers, before any hook is answered. It returns false, and does nothing, if none is missing and
// Timing.RoomReturns is zero.
func (s *Starts) Freeze() bool {
	s.lock()
	defer s.unlock()
	if len(s.ledger.hooks.missing) == 0 && s.ledger.hooks.missing != nil && s.o.Timing.RoomReturns == 0 {
		return false
	}
	s.ledger.freeze(true)
	return true
}

func (l *ledger) freeze(frozen bool) {
	l.hooks.frozen = frozen
	l.limiter.SetFrozen(time.Now(), frozen)
}

// Frozen reports whether admissions are stopped.
func (s *Starts) Frozen() bool {
	s.lock()
	defer s.unlock()
	return s.ledger.hooks.frozen
}

// Thaw blocks until Timing.RoomReturns is over and all hooks are back, and then allows admissions again. It blocks for
// Timing.Rejoin or Timing.RoomReturns at most, whichever is longer, and not after ctx has ended. It returns nil.
func (s *Starts) Thaw(ctx context.Context) error {
	defer func() {
		s.lock()
		defer s.unlock()
		s.ledger.freeze(false)
	}()
	timeout := time.After(max(s.o.Timing.Rejoin, s.o.Timing.RoomReturns))
	select {
	case <-time.After(s.o.Timing.RoomReturns):
	case <-ctx.Done():
	}
	select {
	case <-s.ledger.hooks.back: // which never changes
	case <-timeout:
	case <-ctx.Done():
	}
	return nil
}
