package starts

import (
	"context"
	"sync"
	"time"

	"github.com/containerd/nri/pkg/api"
)

// rejoin is the hooks that outlived an earlier daemon. They come back in any order: until
// all are back the limiter is frozen, else the first would take a free slot of another
// that has waited for longer and comes a moment later. Made by newRejoin; safe for
// concurrent use.
type rejoin struct {
	// within is how long the open gate waits for such hooks: they ask again within a quarter of
	// a second, on a busy node later.
	within time.Duration

	mu      sync.Mutex
	listed  bool                // the runtime has told what it has
	missing map[string]struct{} // containers that were made and have not started: their hooks may wait
	back    chan struct{}       // closed when none is missing
}

func newRejoin(within time.Duration) *rejoin {
	return &rejoin{within: within, back: make(chan struct{})}
}

// expect takes over, the first time that the runtime tells what it has, whose hooks may wait.
func (r *rejoin) expect(ctrs []*api.Container) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listed {
		return
	}
	r.listed, r.missing = true, map[string]struct{}{}
	for _, ctr := range ctrs {
		if ctr.GetState() == api.ContainerState_CONTAINER_CREATED {
			r.missing[ctr.GetId()] = struct{}{}
		}
	}
	if len(r.missing) == 0 {
		close(r.back)
	}
}

// came takes note that the hook of a container is back, or will not come: the container
// started, or is gone.
func (r *rejoin) came(containerID string) {
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

// HookIsBack takes note that the hook of a container has asked again, or never will.
func (s *Starts) HookIsBack(containerID string) { s.hooks.came(containerID) }

// Freeze has nobody admitted while hooks that outlived an earlier daemon are missing. To be called
// once the runtime has told what it has, before any hook is answered. False: none is missing.
func (s *Starts) Freeze() bool {
	select {
	case <-s.hooks.back:
		return false
	default:
		s.Limiter.Freeze()
		return true
	}
}

// Thaw ends what Freeze began once all hooks are back, after Timing.Rejoin, or with ctx. It blocks
// until then.
func (s *Starts) Thaw(ctx context.Context) error {
	defer func() { s.Limiter.Thaw(time.Now()) }()
	timer := time.NewTimer(s.hooks.within)
	defer timer.Stop()
	select {
	case <-s.hooks.back:
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}
