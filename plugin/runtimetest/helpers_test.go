package runtimetest_test

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/stub"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
)

// testTimeout bounds the waits for necessary events. Nothing should take a fraction of it.
const testTimeout = 30 * time.Second

// tick is the pause between two looks at a state without a signal for its changes.
const tick = time.Millisecond

const pluginName = "recorder"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connect connects the plugin and waits until it gets events.
func (r *recorder) connect(t *testing.T, rt *runtimetest.Runtime) stub.Stub {
	t.Helper()
	name := cmp.Or(r.name, pluginName)
	s, err := stub.New(r, stub.WithPluginName(name), stub.WithPluginIdx("10"), stub.WithSocketPath(rt.Socket()),
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
	require.NoError(t, rt.WaitPlugin(within(t), name))
	return s
}

// within returns a context that bounds the waits of a test.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// start starts a runtime and connects the plugin, if there is one.
func start(t *testing.T, r *recorder, o runtimetest.Options) *runtimetest.Runtime {
	t.Helper()
	o.Dir = t.TempDir()
	if o.RequestTimeout == 0 {
		o.RequestTimeout = testTimeout
	}
	rt, err := runtimetest.New(o)
	require.NoError(t, err)
	require.NoError(t, rt.Start())
	t.Cleanup(func() { require.NoError(t, rt.Stop()) })
	if r != nil {
		r.connect(t, rt)
	}
	return rt
}

var (
	somePod  = runtimetest.PodSpec{Namespace: "default", Name: "web", Labels: map[string]string{"app": "web"}, CgroupParent: "/kubepods/podx"}
	sleeping = runtimetest.ContainerSpec{Name: "app", Args: []string{"sleep", "1000"}}
)

// signal is an output that reports when a word was written to it.
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
	case <-time.After(testTimeout):
		require.Failf(t, "nothing came", "waiting for %q", s.word)
	}
}
