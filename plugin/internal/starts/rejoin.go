package starts

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/containerd/nri/pkg/api"
)

// Rejoin waits for the hooks that outlived an earlier daemon. They reconnect in any order. Until all have, the
// limiter is frozen: otherwise the first would take a free slot from another that has waited longer and
// reconnects a moment later. It is part of a Starts, and safe for concurrent use.
type Rejoin struct {
	s      *Starts
	frozen atomic.Bool
	back   chan struct{} // closed when no hook is missing

	// The lock of the Starts guards missing: the containers that were made and have not started, whose hooks may wait. It is
	// nil until they are known.
	missing map[string]struct{}
}

func newRejoin(s *Starts) *Rejoin { return &Rejoin{s: s, back: make(chan struct{})} }

// expectLocked notes which containers' hooks may wait, the first time that the runtime lists its containers.
func (r *Rejoin) expectLocked(ctrs []*api.Container) {
	if r.missing != nil {
		return
	}
	r.missing = map[string]struct{}{}
	for _, ctr := range ctrs {
		if ctr.GetState() == api.ContainerState_CONTAINER_CREATED {
			r.missing[ctr.GetId()] = struct{}{}
		}
	}
	if len(r.missing) == 0 {
		close(r.back)
	}
}

// backLocked notes that the hook of a container reconnected, or never will: the container started, or is gone.
func (r *Rejoin) backLocked(containerID string) {
	if _, is := r.missing[containerID]; !is {
		return
	}
	delete(r.missing, containerID)
	if len(r.missing) == 0 {
		close(r.back)
	}
}

// Freeze stops admissions while hooks that outlived an earlier daemon are missing. Call it once the runtime has
// listed its containers, before any hook is answered. It returns false, and does nothing, if none is missing and
// Timing.RoomReturns is zero.
func (r *Rejoin) Freeze() bool {
	select {
	case <-r.back:
		if r.s.o.Timing.RoomReturns == 0 {
			return false
		}
	default:
	}
	r.freeze(true)
	return true
}

func (r *Rejoin) freeze(frozen bool) {
	r.frozen.Store(frozen)
	r.s.lock()
	defer r.s.unlock()
	r.s.ledger.limiter.SetFrozen(time.Now(), frozen)
}

// Frozen reports whether admissions are stopped.
func (r *Rejoin) Frozen() bool { return r.frozen.Load() }

// Thaw blocks until Timing.RoomReturns is over and all hooks are back, and then allows admissions again. It blocks for
// Timing.Rejoin or Timing.RoomReturns at most, whichever is longer, and not after ctx has ended. It returns nil.
func (r *Rejoin) Thaw(ctx context.Context) error {
	defer r.freeze(false)
	timeout := time.After(max(r.s.o.Timing.Rejoin, r.s.o.Timing.RoomReturns))
	select {
	case <-time.After(r.s.o.Timing.RoomReturns):
	case <-ctx.Done():
	}
	select {
	case <-r.back:
	case <-timeout:
	case <-ctx.Done():
	}
	return nil
}
