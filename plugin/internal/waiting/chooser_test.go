package waiting

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Containers that a restart of the runtime ended say nothing about hooks.
func TestANewConnectionForgetsTheExpectedHooks(t *testing.T) {
	t.Parallel()
	c := aChooser(Options{ProcRoot: t.TempDir()})
	c.Gate.breaker.begins(now0, "container", hooked{uid: "uid"})
	c.Connected("containerd", "2.4.2", 0)
	assert.Empty(t, c.Gate.breaker.gone(now0, "container"))
	assert.Empty(t, c.Gate.breaker.bars(now0, "uid"))
}

// A daemon whose loop hangs decides nothing, and its hooks leave one by one.
func TestTheDaemonIsAliveWhileItsLoopRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		n := aNode(t)
		require.NoError(t, n.Alive(ctx))
		require.Error(t, aChooser(Options{}).Alive(ctx))
	})
}
