package rundir

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestTheLockIsFreeOnceItsDaemonIsGone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, _, err := TryLock(dir, "v1")
	require.NoError(t, err)
	second, holder, err := TryLock(dir, "v1")
	require.NoError(t, err)
	require.Nil(t, second)
	assert.Contains(t, holder, "version v1")
	require.NoError(t, first.Close())

	second, err = AwaitLock(t.Context(), dir, "v1", func(string) {}) // a process that is being forked may hold it for a moment longer
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	third, err := AwaitLock(ctx, dir, "v1", func(string) { cancel() })
	require.NoError(t, err)
	assert.Nil(t, third)
	require.NoError(t, second.Close())
}

// A daemon that is uninstalled removes the file before it releases the lock. The next one may have opened it before that.
func TestALockWhoseFileIsReplacedIsNoLockYet(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old, _, err := TryLock(dir, "v1")
	require.NoError(t, err)
	require.NoError(t, os.Remove(LockPath(dir)))
	require.ErrorIs(t, sign(old, LockPath(dir), "v2"), errReplaced, "it was removed")
	replaced := sign(old, LockPath(dir), "v2")
	require.NoError(t, os.WriteFile(LockPath(dir), nil, 0o600))
	require.ErrorIs(t, sign(old, LockPath(dir), "v2"), errReplaced)
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		lock, err := await(t.Context(), func() (*os.File, string, error) {
			if tries++; tries < 3 {
				return nil, "", fmt.Errorf("lock: %w", replaced)
			}
			return old, "", nil
		}, func(string) { assert.Fail(t, "no daemon has the lock") })
		require.NoError(t, err)
		assert.Same(t, old, lock)
	})
	synctest.Test(t, func(t *testing.T) {
		tries, holders := 0, []string{}
		_, err := await(t.Context(), func() (*os.File, string, error) {
			switch tries++; tries {
			case 1:
				return nil, "", fmt.Errorf("lock: %w", replaced)
			case 2, 3:
				return nil, "v3", nil
			}
			return old, "", nil
		}, func(holder string) { holders = append(holders, holder) })
		require.NoError(t, err)
		assert.Equal(t, []string{"v3"}, holders, "another one took the new file")
	})
	require.NoError(t, old.Close())
}

// With a limit of 0 bytes the write fails as it does on a full file system. The limit is the process's, so no test runs
// beside this one.
func TestTheLockHoldsWithoutRoomForItsText(t *testing.T) { //nolint:paralleltest // see above
	var before unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &before))
	signal.Ignore(unix.SIGXFSZ)
	defer signal.Reset(unix.SIGXFSZ)
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Max: before.Max}))
	first, _, err := TryLock(t.TempDir(), "v1")
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &before))
	require.NoError(t, err)
	require.NoError(t, first.Close())
}

func TestALockThatCannotBeMade(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Symlink("elsewhere", LockPath(dir)))
	_, _, err := TryLock(dir, "v1")
	require.ErrorContains(t, err, "open the run folder's lock")
	_, _, err = TryLock(LockPath(dir)+"/run", "v1")
	require.ErrorContains(t, err, "make the run folder")
}
