package plugin

import (
	"context"
	"sync"
	"time"

	"github.com/containerd/nri/pkg/api"
)

// rejoinWithin is how long the open gate waits for hooks that outlived an earlier
// daemon: they ask again within a quarter of a second, on a busy node later.
const rejoinWithin = 2 * time.Second

// rejoin is the hooks that outlived an earlier daemon. They come back in any order: until
// all are back the limiter is frozen, else the first would take a free slot of another
// that has waited for longer and comes a moment later. Made by newRejoin; safe for
// concurrent use.
type rejoin struct {
	within time.Duration // rejoinWithin, but in tests

	mu      sync.Mutex
	listed  bool                // the runtime has told what it has
	missing map[string]struct{} // containers that were made and have not started: their hooks may wait
	back    chan struct{}       // closed when none is missing
}

func newRejoin() *rejoin { return &rejoin{within: rejoinWithin, back: make(chan struct{})} }

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

// thaw ends the freeze of the limiter once all hooks are back, rejoinWithin from now, or with ctx.
func (p *pacer) thaw(ctx context.Context) error {
	defer func() { p.limiter.Thaw(time.Now()) }()
	timer := time.NewTimer(p.rejoin.within)
	defer timer.Stop()
	select {
	case <-p.rejoin.back:
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}
