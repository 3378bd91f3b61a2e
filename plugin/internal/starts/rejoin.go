package starts

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containerd/nri/pkg/api"
)

// Rejoin waits for the hooks that outlived an earlier daemon. They reconnect in any order. Until all have, the
// limiter is frozen: otherwise the first would take a free slot from another that has waited longer and
// reconnects a moment later. It is safe for concurrent use.
type Rejoin struct {
	ledger *Ledger
	// within is how long the limiter waits for hooks at most: they reconnect within a quarter of a second, on a
	// busy node later.
	within      time.Duration
	roomReturns time.Duration // Timing.RoomReturns
	frozen      atomic.Bool

	mu      sync.Mutex
	missing map[string]struct{} // containers that were made and have not started, whose hooks may wait; nil until they are known
	back    chan struct{}       // closed when none is missing
}

func newRejoin(l *Ledger, within, roomReturns time.Duration) *Rejoin {
	return &Rejoin{ledger: l, within: within, roomReturns: roomReturns, back: make(chan struct{})}
}

// expect notes which containers' hooks may wait, the first time that the runtime lists its containers.
func (r *Rejoin) expect(ctrs []*api.Container) {
	r.mu.Lock()
	defer r.mu.Unlock()
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

// Back notes that the hook of a container reconnected, or never will: the container started, or is gone.
func (r *Rejoin) Back(containerID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
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
		if r.roomReturns == 0 {
			return false
		}
	default:
	}
	r.frozen.Store(true)
	r.ledger.setFrozen(time.Now(), true)
	return true
}

// Frozen reports whether admissions are stopped.
func (r *Rejoin) Frozen() bool { return r.frozen.Load() }

// Thaw blocks until Timing.RoomReturns is over and all hooks are back, and then allows admissions again. It blocks for
// Timing.Rejoin or Timing.RoomReturns at most, whichever is longer, and not after ctx has ended. It returns nil.
func (r *Rejoin) Thaw(ctx context.Context) error {
	defer func() {
		r.frozen.Store(false)
		r.ledger.setFrozen(time.Now(), false)
	}()
	timeout := time.After(max(r.within, r.roomReturns))
	select {
	case <-time.After(r.roomReturns):
	case <-ctx.Done():
	}
	select {
	case <-r.back:
	case <-timeout:
	case <-ctx.Done():
	}
	return nil
}
