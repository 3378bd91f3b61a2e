package plugin

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheDaemonIsAliveWhileItsLoopRuns(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	ctx, cancel := context.WithTimeout(n.ctx, testTimeout)
	defer cancel()
	require.NoError(t, n.d.starts.Alive(ctx))
	n.stopDaemon()
	soon, cancel := context.WithTimeout(n.ctx, 50*time.Millisecond)
	defer cancel()
	require.ErrorContains(t, n.d.starts.Alive(soon), "nothing is decided")
}
