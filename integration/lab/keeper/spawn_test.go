package keeper

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// The type children waits for any child of this process, so all tests share one.
func TestChildren(t *testing.T) {
	c, stop, err := newChildren()
	require.NoError(t, err)
	defer stop()
	log := filepath.Join(t.TempDir(), "logs", "out")
	start := func(script string) int {
		pid, err := c.start([]string{"/bin/sh", "-c", script}, []string{"WORD=hello"}, log)
		require.NoError(t, err)
		return pid
	}

	code, err := c.wait(start("echo $WORD; echo there >&2; exit 7"))
	require.NoError(t, err)
	require.Equal(t, 7, code)
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Equal(t, "hello\nthere\n", string(text))

	sleeper := start("exec sleep 1000")
	require.NoError(t, c.signal(sleeper, syscall.SIGKILL))
	code, err = c.wait(sleeper)
	require.NoError(t, err)
	require.Equal(t, -1, code, "exit code after a signal")
	require.NoError(t, c.signal(sleeper, syscall.SIGKILL), "signal to an ended process")

	// An orphan is reparented to this process and reaped soon.
	code, err = c.wait(start("sleep 0.01 & echo $! > " + log + ".orphan"))
	require.NoError(t, err)
	require.Zero(t, code)
	orphan, err := os.ReadFile(log + ".orphan")
	require.NoError(t, err)
	require.NoError(t, until(t.Context(), "the orphan to be gone", func() (bool, error) {
		_, err := os.Stat("/proc/" + string(orphan[:len(orphan)-1]))
		return errors.Is(err, os.ErrNotExist), nil
	}))

	// Process IDs are reused: an orphan may have the ID of an ended process.
	before := &child{exited: make(chan struct{}), code: 7}
	close(before.exited)
	c.mu.Lock()
	namesake, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", "exit 1"}, nil)
	c.running[namesake] = before
	c.mu.Unlock()
	require.NoError(t, err)
	require.NoError(t, until(t.Context(), "the namesake to be gone", func() (bool, error) {
		return errors.Is(syscall.Kill(namesake, 0), syscall.ESRCH), nil
	}))
	code, err = c.wait(namesake)
	require.NoError(t, err)
	require.Equal(t, 7, code, "exit code of the process that was started here")

	_, err = c.start([]string{"/nonexistent"}, nil, log)
	require.ErrorIs(t, err, syscall.ENOENT)
	_, err = c.start(nil, nil, log)
	require.Error(t, err)
	_, err = c.wait(1)
	require.Error(t, err)
	require.Error(t, c.signal(1, syscall.SIGKILL), "signal to a process that is not a child")
}
