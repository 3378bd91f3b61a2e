package signals

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cores"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// node is a node whose load average alone can be measured, in a bubble of synctest. A pod starts there, so it is
// sampled every half second.
type node struct {
	*Monitor
	observe.Recorder
	t    *testing.T
	proc string
	log  *logtest.Hook

	mu      sync.Mutex
	limiter *throttle.Limiter
	events  []string
}

// guarded is a node as the limiter of its Monitor.
type guarded struct{ *node }

func (g guarded) Busy(now time.Time) (starting, waiting bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.limiter.Busy(now)
}

func (g guarded) Observe(now time.Time, s throttle.Signals) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limiter.Observe(now, s)
}

// starts reports whether a pod may start now.
func (n *node) starts(uid string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	return n.limiter.Join(now, throttle.Request{UID: uid}).TryStart(now).Granted
}

// aNode returns a node with a load of 1.
func aNode(t *testing.T) *node {
	t.Helper()
	log, logged := logtest.NewNullLogger()
	n := &node{t: t, proc: t.TempDir(), limiter: throttle.New(time.Now(), throttle.Settings{}), log: logged}
	n.Monitor = New(n.proc, n.proc, cores.Of(2), guarded{n}, observe.New(observe.Options{Log: log, Events: n, Nodes: func() int { return 1 }}).Report)
	n.load("1.00")
	n.starts("starting")
	go func() { assert.NoError(t, n.Run(t.Context())) }()
	return n
}

// Node implements observe.EventWriter.
func (n *node) Node(kind, reason, message string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events = append(n.events, kind+" "+reason+": "+message)
}

func (n *node) path() string { return filepath.Join(n.proc, "loadavg") }

// load sets the load average. The monitor never reads a part of it.
func (n *node) load(load string) {
	require.NoError(n.t, os.WriteFile(n.path()+".new", []byte(load+" 1.00 1.00 1/100 1\n"), 0o600))
	require.NoError(n.t, os.Rename(n.path()+".new", n.path()))
}

// limit puts settings in force.
func (n *node) limit(settings throttle.Settings) {
	n.Prepare(settings, 2*time.Second)
	n.mu.Lock()
	n.limiter.Configure(time.Now(), settings)
	n.mu.Unlock()
	n.Wake()
}

// told returns the events on the node, after a few samples.
func (n *node) told() []string {
	time.Sleep(10 * time.Second)
	synctest.Wait()
	return n.written()
}

// written returns the events on the node until now.
func (n *node) written() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string{}, n.events...)
}

// on returns settings with limits of 4 on some signals.
func on(all ...throttle.Signal) (s throttle.Settings) {
	for _, signal := range all {
		s.Signals[signal].Max = 4
	}
	return s
}
