package plugin

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
)

// stops is a pod watch of which a test says what is being stopped.
type stops struct {
	mu       sync.Mutex
	unlisted bool
	pod      string // empty: none
	asked    int
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

func (s *stops) Listed() bool { return !s.unlisted }

func (s *stops) Stopping(now time.Time) (podwatch.Pod, time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return podwatch.Pod{Namespace: "ns", Name: s.pod}, now.Add(time.Minute), s.pod != ""
}

func TestTheDaemonRegistersWhileNoContainerIsBeingStopped(t *testing.T) {
	t.Parallel()
	s := &stops{pod: "slow"}
	n := unconnectedNode(t, oneAtATime, func(n *node) { n.stopping = s })
	require.NoError(t, n.rt.Start(n.ctx))
	logged := n.logged()
	n.startDaemon()
	n.eventually("it looks again and again", s.askedOften)
	connected, _, _, _, err := n.d.connection.state()
	assert.False(t, connected)
	require.ErrorContains(t, err, "while ns/slow is being stopped")
	require.ErrorContains(t, n.d.Ready(), "ns/slow")
	assert.InDelta(t, 1, counted(t, n, "pod_pacemaker_registration_waits"), 0)

	s.set("")
	n.connected()
	n.eventually("it is ready", func() bool { return n.d.Ready() == nil })
	assert.Zero(t, counted(t, n, "pod_pacemaker_registration_waits"))
	assert.Contains(t, logged(), "ns/slow is being stopped")
	assert.Contains(t, logged(), "no container is being stopped any more")
}

func TestADroppedDaemonWaitsForAStopToo(t *testing.T) {
	t.Parallel()
	s := &stops{}
	n := newNode(t, oneAtATime, func(n *node) { n.stopping = s })
	n.eventually("it is ready", func() bool { return n.d.Ready() == nil })
	s.set("slow")
	_, err := n.rt.DropPlugins()
	require.NoError(t, err)
	n.eventually("it looks again and again", s.askedOften)
	require.ErrorContains(t, n.d.Ready(), "ns/slow")
	s.set("")
	n.connected()
}

func TestTheListOfPodsIsWaitedForAndNotForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := stopWait{source: &stops{unlisted: true, pod: "unknown"}}
		w.begin(time.Now())
		require.ErrorIs(t, w.reason(time.Now()), errNotListed)
		time.Sleep(listWithin - time.Nanosecond)
		require.ErrorIs(t, w.reason(time.Now()), errNotListed)
		time.Sleep(time.Nanosecond)
		require.NoError(t, w.reason(time.Now()), "without an API server, nobody can tell")
	})
	standalone := stopWait{}
	require.NoError(t, standalone.reason(time.Now()))
}
