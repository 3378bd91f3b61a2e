package socket

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// socketIn gives a path in a new directory that is short enough for a socket,
// whatever the test's name is.
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
	l, err := Listen(path, nil)
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
	l, err := Listen(path, nil)
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

	l, err := Listen(path, nil)
	require.NoError(t, err)
	defer l.Close()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "unix", path)
	require.NoError(t, err)
	require.NoError(t, c.Close())
}

func TestListenRefusesALiveSocket(t *testing.T) {
	t.Parallel()
	path := socketIn(t)
	l, err := Listen(path, nil)
	require.NoError(t, err)
	defer l.Close()
	_, err = Listen(path, nil)
	require.ErrorIs(t, err, ErrInUse)
	require.ErrorContains(t, err, path)
	_, err = (&net.Dialer{}).DialContext(t.Context(), "unix", path)
	assert.NoError(t, err, "the first still listens")
}

func TestListenGivesTheSocketToOneOfMany(t *testing.T) {
	t.Parallel()
	path := socketIn(t)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	stale.SetUnlinkOnClose(false)
	require.NoError(t, stale.Close())

	listeners := make([]net.Listener, 16)
	errs := make([]error, len(listeners))
	var all sync.WaitGroup
	for i := range listeners {
		all.Go(func() { listeners[i], errs[i] = Listen(path, nil) })
	}
	all.Wait()
	winners := 0
	for i, l := range listeners {
		if errs[i] == nil {
			winners++
			t.Cleanup(func() { assert.NoError(t, l.Close()) })
			continue
		}
		require.ErrorIs(t, errs[i], ErrInUse)
	}
	assert.Equal(t, 1, winners)
}

func TestListenTouchesNothingElse(t *testing.T) {
	t.Parallel()
	path := socketIn(t)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte("precious"), 0o600))
	_, err := Listen(path, nil)
	require.ErrorContains(t, err, "something else than a socket")
	assert.FileExists(t, path)

	link := filepath.Join(filepath.Dir(path), "link")
	require.NoError(t, os.Symlink(path, link))
	_, err = Listen(link, nil)
	require.Error(t, err)
	assert.FileExists(t, link)
}

func TestListenSaysThatAPathIsTooLong(t *testing.T) {
	t.Parallel()
	_, err := Listen("/"+strings.Repeat("x", 107), nil)
	require.ErrorContains(t, err, "at most 107")
}

func TestListenSaysWhatIsWrongWithTheDirectory(t *testing.T) {
	t.Parallel()
	file := socketIn(t)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := Listen(filepath.Join(file, "a.sock"), nil)
	require.ErrorContains(t, err, "not a directory")
}

func TestCloseLeavesASuccessorsSocket(t *testing.T) {
	t.Parallel()
	path := socketIn(t)
	first, err := Listen(path, nil)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	second, err := Listen(path, nil)
	require.NoError(t, err)
	defer second.Close()
	require.NoError(t, first.Close())
	assert.FileExists(t, path)
}
