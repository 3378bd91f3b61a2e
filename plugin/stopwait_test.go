package plugin

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stops is a pod watch for which a test sets the pod that is being stopped.
type stops struct {
	mu    sync.Mutex
	pod   string // empty: none
	asked int
}

func (s *stops) set(pod string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pod, s.asked = pod, 0
}

func (s *stops) askedOften() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked >= 3
}
func (s *stops) Known(string) bool { return true }

func (s *stops) Listed() bool { return true }

func (*stops) Healthy() bool { return true }

func (s *stops) Stopping(now time.Time, _ map[string]bool) (string, time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return "ns/" + s.pod, now.Add(time.Minute), s.pod != ""
}

func TestTheDaemonRegistersWhenNoContainerIsBeingStopped(t *testing.T) {
	t.Parallel()
	s := &stops{pod: "slow"}
	n := unconnectedNode(t, oneAtATime, func(n *node) { n.stopping = s })
	require.NoError(t, n.rt.Start())
	logged := n.logged()
	n.startDaemon()
	n.eventually("the daemon checks again and again", s.askedOften)
	assert.False(t, n.d.connection.State().Connected)
	require.ErrorContains(t, n.d.connection.State().Err, "is stopping a container of pod ns/slow")
	require.ErrorContains(t, n.d.Ready(), "is stopping a container of a pod", "every process on the node may read this")
	assert.InDelta(t, 1, counted(t, n, "pod_pacemaker_registration_waits"), 0)

	s.set("")
	n.connected()
	n.eventually("the daemon is ready", func() bool { return n.d.Ready() == nil })
	assert.Zero(t, counted(t, n, "pod_pacemaker_registration_waits"))
	assert.Contains(t, logged(), "is stopping a container of pod ns/slow")
	assert.Contains(t, logged(), "nothing keeps the daemon from registering any more")
}
