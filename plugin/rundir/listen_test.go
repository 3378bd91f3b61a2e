package rundir

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// socketIn returns a path in a new directory that is short enough for a socket, for any test name.
func socketIn(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "socket")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	return filepath.Join(dir, "run", "a.sock")
}

func TestListenIsForTheOwnerOnly(t *testing.T) {
	t.Parallel()
	path := socketIn(t)
	l, err := Listen(path, socketMode)
	require.NoError(t, err)
	socket, err := os.Lstat(path)
	require.NoError(t, err)
	assert.Equal(t, os.ModeSocket|0o600, socket.Mode())
	dir, err := os.Stat(filepath.Dir(path))
	require.NoError(t, err)
	assert.Equal(t, os.ModeDir|0o700, dir.Mode())
	require.NoError(t, l.Close())
	assert.NoFileExists(t, path)
}

func TestListenLeavesAnExistingDirectoryAsItIs(t *testing.T) {
	t.Parallel()
	path := socketIn(t)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.Chmod(filepath.Dir(path), 0o755))
	l, err := Listen(path, socketMode)
	require.NoError(t, err)
	defer l.Close()
	dir, err := os.Stat(filepath.Dir(path))
	require.NoError(t, err)
	assert.Equal(t, os.ModeDir|0o755, dir.Mode())
}

func TestListenReplacesAStaleSocket(t *testing.T) {
	t.Parallel()
	path := socketIn(t)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	dead.SetUnlinkOnClose(false) // as after a kill
	require.NoError(t, dead.Close())
	require.FileExists(t, path)

	l, err := Listen(path, socketMode)
	require.NoError(t, err)
	defer l.Close()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "unix", path)
	require.NoError(t, err)
	require.NoError(t, c.Close())
}

func TestASocketThatAnotherProgramRemovesComesBack(t *testing.T) {
	t.Parallel()
	path := socketIn(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error)
		go func() {
			served <- Serve(ctx, path, func(ctx context.Context, l net.Listener) error {
				<-ctx.Done()
				return l.Close()
			})
		}()
		synctest.Wait()
		require.NoError(t, os.RemoveAll(filepath.Dir(path)))
		time.Sleep(lookEvery)
		synctest.Wait()
		assert.FileExists(t, path)
		cancel()
		require.NoError(t, <-served)
		assert.NoFileExists(t, path)
	})
}

func TestListenTouchesNothingElse(t *testing.T) {
	t.Parallel()
	path := socketIn(t)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte("precious"), 0o600))
	_, err := Listen(path, socketMode)
	require.ErrorContains(t, err, "something else than a socket")
	assert.FileExists(t, path)

	link := filepath.Join(filepath.Dir(path), "link")
	require.NoError(t, os.Symlink(path, link))
	_, err = Listen(link, socketMode)
	require.Error(t, err)
	assert.FileExists(t, link)
}

func TestListenSaysWhatIsWrongWithTheDirectory(t *testing.T) {
	t.Parallel()
	file := socketIn(t)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := Listen(filepath.Join(file, "a.sock"), socketMode)
	require.ErrorContains(t, err, "not a directory")
}
