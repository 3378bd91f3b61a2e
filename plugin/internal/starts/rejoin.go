package starts

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// Rejoin is the hooks that outlived an earlier daemon. They come back in any order: until
// all are back the limiter is frozen, else the first would take a free slot of another
// that has waited for longer and comes a moment later. Safe for
// concurrent use.
type Rejoin struct {
	limiter *throttle.Limiter
	// within is how long the open gate waits for such hooks: they ask again within a quarter of
	// a second, on a busy node later.
	within time.Duration
	settle time.Duration // Timing.Settle
	frozen atomic.Bool

	mu      sync.Mutex
	missing map[string]struct{} // containers that were made and have not started: their hooks may wait; nil: not told yet
	back    chan struct{}       // closed when none is missing
}

func newRejoin(l *throttle.Limiter, within, settle time.Duration) *Rejoin {
	return &Rejoin{limiter: l, within: within, settle: settle, back: make(chan struct{})}
}

// expect takes over, the first time that the runtime tells what it has, whose hooks may wait.
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

// Back takes note that the hook of a container is back, or will not come: the container
// started, or is gone.
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

// Freeze stops admissions while hooks that outlived an earlier daemon are missing. To be called
// once the runtime has told what it has, before any hook is answered. False: none is missing, and
// Timing.Settle is zero.
func (r *Rejoin) Freeze() bool {
	select {
	case <-r.back:
		if r.settle == 0 {
			return false
		}
	default:
	}
	r.frozen.Store(true)
	r.limiter.SetFrozen(time.Now(), true)
	return true
}

// Frozen reports whether Freeze has begun what Thaw has not ended.
func (r *Rejoin) Frozen() bool { return r.frozen.Load() }

// Thaw ends what Freeze began after Timing.Settle once all hooks are back, after Timing.Rejoin, or
// with ctx. It blocks until then.
func (r *Rejoin) Thaw(ctx context.Context) error {
	defer func() {
		r.frozen.Store(false)
		r.limiter.SetFrozen(time.Now(), false)
	}()
	over := time.After(max(r.within, r.settle))
	select {
	case <-time.After(r.settle):
	case <-ctx.Done():
	}
	select {
	case <-r.back:
	case <-over:
	case <-ctx.Done():
	}
	return nil
}
