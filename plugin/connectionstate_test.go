package plugin

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// nodeEvents collects the events of the node.
type nodeEvents struct {
	mu    sync.Mutex
	kinds []string
}

func (*nodeEvents) Pod(string, string, string, string, string) {}

func (n *nodeEvents) Node(_, reason, _ string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kinds = append(n.kinds, reason)
}

func (n *nodeEvents) said() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.kinds...)
}

func TestTheNodesEventsSayThatTheRuntimeIsGoneAndBack(t *testing.T) {
	t.Parallel()
	told := &nodeEvents{}
	n := newNode(t, oneAtATime, tuned(func(r *tuning) { r.events = told }))
	assert.Empty(t, told.said(), "the first connection gives no event")
	n.rt.Kill()
	n.eventually("the event is written", func() bool { return len(told.said()) == 1 })
	require.NoError(t, n.rt.Start())
	n.connected()
	n.eventually("the event of its return is written", func() bool { return len(told.said()) == 2 })
	assert.Equal(t, []string{"RuntimeDisconnected", "RuntimeConnected"}, told.said())
}
