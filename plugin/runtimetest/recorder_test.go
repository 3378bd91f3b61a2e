package runtimetest_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/require"
)

// event is one call of a plugin, with the fields that the tests check.
type event struct {
	name      string
	pod       *api.PodSandbox
	container *api.Container
}

// recorder is a plugin that records its events. The functions, if set, decide.
type recorder struct {
	name   string // pluginName if empty
	runPod func(ctx context.Context, p *api.PodSandbox) error
	create func(ctx context.Context, p *api.PodSandbox, c *api.Container) (*api.ContainerAdjustment, error)

	mu sync.Mutex
	// guarded by mu
	events  []event
	synced  [][]string // names of pods and containers, one list for each synchronisation
	timeout time.Duration
	changed chan struct{}
}

func (r *recorder) add(name string, p *api.PodSandbox, c *api.Container) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, event{name: name, pod: p, container: c})
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

func (r *recorder) Synchronize(_ context.Context, pods []*api.PodSandbox, containers []*api.Container) ([]*api.ContainerUpdate, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, p := range pods {
		names = append(names, p.Name)
	}
	for _, c := range containers {
		names = append(names, c.Name+":"+strings.TrimPrefix(c.State.String(), "CONTAINER_"))
	}
	r.synced = append(r.synced, names)
	return nil, nil
}

func (r *recorder) RunPodSandbox(ctx context.Context, p *api.PodSandbox) error {
	r.add("RunPodSandbox", p, nil)
	if r.runPod != nil {
		return r.runPod(ctx, p)
	}
	return nil
}

func (r *recorder) StopPodSandbox(_ context.Context, p *api.PodSandbox) error {
	r.add("StopPodSandbox", p, nil)
	return nil
}

func (r *recorder) RemovePodSandbox(_ context.Context, p *api.PodSandbox) error {
	r.add("RemovePodSandbox", p, nil)
	return nil
}

func (r *recorder) CreateContainer(ctx context.Context, p *api.PodSandbox, c *api.Container) (*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	r.add("CreateContainer", p, c)
	if r.create != nil {
		adjust, err := r.create(ctx, p, c)
		return adjust, nil, err
	}
	return nil, nil, nil
}

func (r *recorder) PostStartContainer(_ context.Context, p *api.PodSandbox, c *api.Container) error {
	r.add("PostStartContainer", p, c)
	return nil
}

func (r *recorder) StopContainer(_ context.Context, p *api.PodSandbox, c *api.Container) ([]*api.ContainerUpdate, error) {
	r.add("StopContainer", p, c)
	return nil, nil
}

func (r *recorder) RemoveContainer(_ context.Context, p *api.PodSandbox, c *api.Container) error {
	r.add("RemoveContainer", p, c)
	return nil
}

// names are the names of the events so far.
func (r *recorder) names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, e := range r.events {
		names = append(names, e.name)
	}
	return names
}

// syncs returns what the plugin was synchronised with, each time.
func (r *recorder) syncs() [][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.synced)
}

// all are the events of that name.
func (r *recorder) all(name string) []event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.events), func(e event) bool { return e.name != name })
}

// last is the last event of that name.
func (r *recorder) last(t *testing.T, name string) event {
	t.Helper()
	all := r.all(name)
	require.NotEmpty(t, all, "no %s event", name)
	return all[len(all)-1]
}

// clear forgets the events so far.
func (r *recorder) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = nil
}

// await waits until n events of that name have come.
func (r *recorder) await(t *testing.T, name string, n int) {
	t.Helper()
	deadline := time.After(testTimeout)
	for {
		r.mu.Lock()
		if r.changed == nil {
			r.changed = make(chan struct{})
		}
		changed, count := r.changed, 0
		for _, e := range r.events {
			if e.name == name {
				count++
			}
		}
		r.mu.Unlock()
		if count >= n {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			require.Failf(t, "event did not come", "%d of %d %s in %v", count, n, name, r.names())
		}
	}
}
