//go:build e2e && full

package e2e

import (
	"context"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A daemon hangs with its sockets open: the waiting pods notice this and start as if the daemon
// were gone. When the daemon continues, it paces pods again.
func TestDaemonHangs(t *testing.T) {
	d := startDaemon(t, placesForAll...)
	resume := func() { assert.NoError(t, d.Signal(context.Background(), syscall.SIGCONT)) }
	assertStartWithoutDaemon(t, d, func() {
		require.NoError(t, d.Signal(t.Context(), syscall.SIGSTOP))
		t.Cleanup(resume) // a stopped process ignores SIGTERM
	})
	resume()
	eventually(t, "the daemon paces pods again", func() bool { return d.status(t).Ready })
}
