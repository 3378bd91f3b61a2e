//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// follower records the containers of a namespace while they come and go, because containerd forgets
// the containers that kubelet has removed.
type follower struct {
	namespace string
	mu        sync.Mutex
	seen      map[string]container // by ID
}

// follow records the containers of a namespace until the test ends.
func follow(t *testing.T, namespace string) *follower {
	t.Helper()
	f := &follower{namespace: namespace, seen: map[string]container{}}
	ctx, cancel := context.WithCancel(context.Background())
	var following sync.WaitGroup
	following.Go(func() {
		for ctx.Err() == nil {
			f.read(ctx)
			after(ctx, 100*time.Millisecond)
		}
	})
	t.Cleanup(func() { cancel(); following.Wait() })
	return f
}

// read records the changes. containerd is away at times, but it still knows its containers when it
// is back.
func (f *follower) read(ctx context.Context) {
	all, err := listContainers(ctx, f.namespace)
	if err != nil {
		return
	}
	for _, c := range all {
		known := f.of(c.Id)
		began, ended := c.State != runtimeapi.ContainerState_CONTAINER_CREATED, c.State == runtimeapi.ContainerState_CONTAINER_EXITED
		if !began || (!known.started.IsZero() && (!ended || !known.finished.IsZero())) {
			continue
		}
		if now, err := statusOf(ctx, c); err == nil {
			f.note(c.Id, now)
		}
	}
}

func (f *follower) of(id string) container {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen[id]
}

func (f *follower) note(id string, c container) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen[id] = c
}

// started returns the started containers in the order of their starts.
func (f *follower) started() (all []container) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.seen {
		if !c.started.IsZero() {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b container) int { return a.started.Compare(b.started) })
	return all
}

// start is the time from a container's process start to ready.
type start struct {
	container
	until time.Time // when it was ready, ended or deleted; zero: not yet
}

func (s start) String() string {
	const clock = "15:04:05.000"
	return fmt.Sprintf("%s from %s to %s, exited %s", s.pod, s.started.Format(clock), s.until.Format(clock), s.finished.Format(clock))
}

// starts returns the starts of all containers in their order. goes returns when a pod was deleted.
// Starts of a pod after its deletion are left out.
func (f *follower) starts(t *testing.T, goes func(pod string) time.Time) (all []start) {
	t.Helper()
	f.read(t.Context()) // changes since the last read
	readyAt := kubeletReadies(t, f.namespace)
	for _, c := range f.started() {
		s, gone := start{c, c.finished}, goes(c.pod)
		if !gone.IsZero() && gone.Before(c.started) {
			continue
		}
		for _, end := range append(readyAt[c.pod], gone) {
			if end.After(c.started) && (s.until.IsZero() || end.Before(s.until)) {
				s.until = end
			}
		}
		all = append(all, s)
	}
	return all
}

// beside returns the other starts under way when it began.
func (s start) beside(all []start) (others []start) {
	for _, other := range all {
		if other.started.Before(s.started) && (other.until.IsZero() || other.until.After(s.started)) {
			others = append(others, other)
		}
	}
	return others
}
