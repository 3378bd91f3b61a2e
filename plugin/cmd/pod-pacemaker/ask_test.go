package main

import (
	"context"
	"fmt"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStoppedDaemon(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: adminSocket(dir), Net: "unix"})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	stderr := fails(t, exitFailure, "status", "--run-dir", dir)
	assert.Contains(t, stderr, "the daemon has stopped: no answer at "+dir+"/admin.sock")
}

func TestExplain(t *testing.T) {
	t.Parallel()
	refused := fmt.Errorf("ask the daemon: %w", syscall.EACCES)
	require.EqualError(t, explain(t.Context(), "/s", refused), "only root may ask the daemon at /s: try sudo")
	late := fmt.Errorf("read: %w", context.DeadlineExceeded)
	require.EqualError(t, explain(t.Context(), "/s", late), "the daemon at /s does not answer in time; 'journalctl -u pod-pacemaker' or its container's log may say why")
	other := fmt.Errorf("the daemon answers: out of order")
	require.EqualError(t, explain(t.Context(), "/s", other), "/s: the daemon answers: out of order")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, explain(ctx, "/s", refused), context.Canceled)
}

// In a pod of the DaemonSet, the environment names the folder. A flag goes before it.
func TestTheEnvironmentNamesTheRunDir(t *testing.T) {
	mine, other := serve(t, &fixed{status: herd()}), serve(t, &fixed{})
	t.Setenv(runDirEnv, mine)
	_, stdout, _ := call(t, "status")
	assert.Contains(t, stdout, "worker-3: ")
	_, stdout, _ = call(t, "status", "--run-dir", other)
	assert.NotContains(t, stdout, "worker-3: ")
}
