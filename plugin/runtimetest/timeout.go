package runtimetest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/containerd/nri/pkg/adaptation"
)

// processTimeout is the plugin request timeout, which the adaptation keeps once
// for the whole process. Runtimes that run at the same time must agree on it.
var processTimeout = sharedTimeout{changed: make(chan struct{})}

type sharedTimeout struct {
	mu sync.Mutex
	// guarded by mu
	value   time.Duration
	users   int
	changed chan struct{} // closed and replaced when the last user leaves
}

// acquire sets the timeout, waiting until no runtime with another one is left.
func (t *sharedTimeout) acquire(ctx context.Context, d time.Duration) error {
	for {
		t.mu.Lock()
		if t.users == 0 || t.value == d {
			t.users++
			t.value = d
			adaptation.SetPluginRequestTimeout(d)
			t.mu.Unlock()
			return nil
		}
		other, changed := t.value, t.changed
		t.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("request timeout %v: runtimes with a timeout of %v still run in this process: %w", d, other, context.Cause(ctx))
		}
	}
}

func (t *sharedTimeout) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.users--
	if t.users == 0 {
		adaptation.SetPluginRequestTimeout(adaptation.DefaultPluginRequestTimeout)
		close(t.changed)
		t.changed = make(chan struct{})
	}
}
