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

// follower records the containers of namespaces while they come and go, because containerd forgets
// the containers that kubelet has removed.
type follower struct {
	namespaces []string
	mu         sync.Mutex
	seen       map[string]container // by ID
}

// follow records the containers of namespaces until the test ends.
func follow(t *testing.T, namespaces ...string) *follower {
	t.Helper()
	f := &follower{namespaces: namespaces, seen: map[string]container{}}
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
	var all []*runtimeapi.Container
	for _, namespace := range f.namespaces {
		some, err := listContainers(ctx, namespace)
		if err != nil {
			return
		}
		all = append(all, some...)
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

// failed returns the containers that ended without a start.
func (f *follower) failed() (all []container) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.seen {
		if c.started.IsZero() && !c.finished.IsZero() {
			all = append(all, c)
		}
	}
	return all
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

// starts returns the starts of all containers in their order.
func (f *follower) starts(t *testing.T) (all []start) {
	t.Helper()
	f.read(t.Context()) // changes since the last read
	readyAt := f.readies(t)
	for _, c := range f.started() {
		s := start{c, c.finished}
		for _, end := range readyAt[c.pod] {
			if end.After(c.started) && (s.until.IsZero() || end.Before(s.until)) {
				s.until = end
			}
		}
		all = append(all, s)
	}
	return all
}

// readies returns when pods got ready, by name.
func (f *follower) readies(t *testing.T) map[string][]time.Time {
	t.Helper()
	all := map[string][]time.Time{}
	for _, namespace := range f.namespaces {
		for pod, times := range kubeletReadies(t, namespace) {
			all[pod] = append(all[pod], times...) // earlier pods of that name may have been in other namespaces
		}
	}
	for _, times := range all {
		slices.SortFunc(times, time.Time.Compare)
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
