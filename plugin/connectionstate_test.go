package plugin

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// nodeNotices keeps what is said of the node.
type nodeNotices struct {
	mu    sync.Mutex
	kinds []string
}

func (*nodeNotices) pod(string, string, string, string, string) {}

func (n *nodeNotices) node(_, reason, _ string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kinds = append(n.kinds, reason)
}

func (n *nodeNotices) said() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.kinds...)
}

// droppedMeanwhile ends the connection while its return is being told.
type droppedMeanwhile struct {
	nodeNotices
	end func()
}

func (d *droppedMeanwhile) node(string, string, string) { d.end() }

func TestAConnectionThatEndsWhileItsReturnIsToldIsNotCalledConnected(t *testing.T) {
	t.Parallel()
	n := unconnectedNode(t, oneAtATime)
	n.d = newDaemon(n.options, 2, nil, n.pods)
	c := n.d.connection
	c.tellLost(errClosed)
	n.d.pacer.notices = &droppedMeanwhile{end: func() { c.end(time.Now()) }}
	number := c.begin()
	require.NoError(t, c.configured(number, "containerd", "2.4.2", time.Second))
	c.becameSynchronized(number)
	require.ErrorIs(t, c.paces(), errNotConnected)
	assert.Zero(t, counted(t, n, "pod_pacemaker_connected"))
}

func TestTheNodesEventsSayThatTheRuntimeIsGoneAndBack(t *testing.T) {
	t.Parallel()
	told := &nodeNotices{}
	n := newNode(t, oneAtATime, tuned(func(p *pacer) { p.notices = told }))
	assert.Empty(t, told.said(), "the first connection is no news")
	n.rt.Kill()
	n.eventually("it is said", func() bool { return len(told.said()) == 1 })
	require.NoError(t, n.rt.Start(n.ctx))
	n.connected()
	n.eventually("its return, too", func() bool { return len(told.said()) == 2 })
	assert.Equal(t, []string{"RuntimeDisconnected", "RuntimeConnected"}, told.said())
}
