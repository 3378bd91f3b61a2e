package runtimetest_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
)

// patience bounds what must happen; nothing is expected to take a fraction of it.
const patience = 30 * time.Second

const pluginName = "recorder"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// event is one call a plugin got, with what the tests look at.
type event struct {
	name      string
	pod       *api.PodSandbox
	container *api.Container
}

// recorder is a plugin that records the events it gets. The functions, if set, decide.
type recorder struct {
	runPod    func(ctx context.Context, p *api.PodSandbox) error
	create    func(ctx context.Context, p *api.PodSandbox, c *api.Container) (*api.ContainerAdjustment, error)
	start     func(ctx context.Context, c *api.Container) error
	postStart func(ctx context.Context, c *api.Container) error

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

func (r *recorder) PostCreateContainer(_ context.Context, p *api.PodSandbox, c *api.Container) error {
	r.add("PostCreateContainer", p, c)
	return nil
}

func (r *recorder) StartContainer(ctx context.Context, p *api.PodSandbox, c *api.Container) error {
	r.add("StartContainer", p, c)
	if r.start != nil {
		return r.start(ctx, c)
	}
	return nil
}

func (r *recorder) PostStartContainer(ctx context.Context, p *api.PodSandbox, c *api.Container) error {
	r.add("PostStartContainer", p, c)
	if r.postStart != nil {
		return r.postStart(ctx, c)
	}
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

// names are the events so far.
func (r *recorder) names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, e := range r.events {
		names = append(names, e.name)
	}
	return names
}

// last is the last event of that name.
func (r *recorder) last(t *testing.T, name string) event {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range slices.Backward(r.events) {
		if e.name == name {
			return e
		}
	}
	require.Failf(t, "no such event", "%s", name)
	return event{}
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
	deadline := time.After(patience)
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

// connect connects the plugin and waits until it gets events.
func (r *recorder) connect(t *testing.T, rt *runtimetest.Runtime) stub.Stub {
	t.Helper()
	s, err := stub.New(r, stub.WithPluginName(pluginName), stub.WithPluginIdx("10"), stub.WithSocketPath(rt.Socket()),
		stub.WithOnClose(func() {}))
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	t.Cleanup(func() {
		s.Stop()
		s.Wait()
	})
	r.mu.Lock()
	r.timeout = s.RequestTimeout()
	r.mu.Unlock()
	require.NoError(t, rt.WaitPlugin(within(t), pluginName))
	return s
}

// within bounds what a test waits for.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// start starts a runtime and connects the plugin, if there is one.
func start(t *testing.T, r *recorder, o runtimetest.Options) *runtimetest.Runtime {
	t.Helper()
	o.Dir = t.TempDir()
	rt, err := runtimetest.New(o)
	require.NoError(t, err)
	require.NoError(t, rt.Start(within(t)))
	t.Cleanup(func() { require.NoError(t, rt.Stop()) })
	if r != nil {
		r.connect(t, rt)
	}
	return rt
}

var (
	somePod  = runtimetest.PodSpec{Namespace: "default", Name: "web", Labels: map[string]string{"app": "web"}, CgroupParent: "/kubepods/podx"}
	sleeping = runtimetest.ContainerSpec{Name: "app", Args: []string{"sleep", "1000"}, Labels: map[string]string{"tier": "front"}}
)

// signal is an output that tells when a word was written to it.
type signal struct {
	word string
	seen chan struct{}

	mu   sync.Mutex
	text string // guarded by mu
}

func newSignal(word string) *signal { return &signal{word: word, seen: make(chan struct{})} }

func (s *signal) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := strings.Contains(s.text, s.word)
	s.text += string(p)
	if !before && strings.Contains(s.text, s.word) {
		close(s.seen)
	}
	return len(p), nil
}

func (s *signal) await(t *testing.T) {
	t.Helper()
	select {
	case <-s.seen:
	case <-time.After(patience):
		require.Failf(t, "nothing came", "waiting for %q", s.word)
	}
}
