package gate_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/gatetest"
)

func TestListenIsForTheOwnerOnly(t *testing.T) {
	t.Parallel()
	path := gatetest.Socket(t)
	l, err := gate.Listen(path)
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
	path := gatetest.Socket(t)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.Chmod(filepath.Dir(path), 0o755))
	l, err := gate.Listen(path)
	require.NoError(t, err)
	defer l.Close()
	dir, err := os.Stat(filepath.Dir(path))
	require.NoError(t, err)
	assert.Equal(t, os.ModeDir|0o755, dir.Mode())
}

func TestListenReplacesAStaleSocket(t *testing.T) {
	t.Parallel()
	path := gatetest.Socket(t)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	dead.SetUnlinkOnClose(false) // as after a kill
	require.NoError(t, dead.Close())
	require.FileExists(t, path)

	l, err := gate.Listen(path)
	require.NoError(t, err)
	defer l.Close()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "unix", path)
	require.NoError(t, err)
	require.NoError(t, c.Close())
}

func TestListenRefusesALiveSocket(t *testing.T) {
	t.Parallel()
	path := gatetest.Socket(t)
	l, err := gate.Listen(path)
	require.NoError(t, err)
	defer l.Close()
	_, err = gate.Listen(path)
	require.ErrorIs(t, err, gate.ErrInUse)
	require.ErrorContains(t, err, path)
	_, err = (&net.Dialer{}).DialContext(t.Context(), "unix", path)
	assert.NoError(t, err, "the first still listens")
}

func TestListenGivesTheSocketToOneOfMany(t *testing.T) {
	t.Parallel()
	path := gatetest.Socket(t)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	stale.SetUnlinkOnClose(false)
	require.NoError(t, stale.Close())

	listeners := make([]net.Listener, 16)
	errs := make([]error, len(listeners))
	var all sync.WaitGroup
	for i := range listeners {
		all.Go(func() { listeners[i], errs[i] = gate.Listen(path) })
	}
	all.Wait()
	winners := 0
	for i, l := range listeners {
		if errs[i] == nil {
			winners++
			t.Cleanup(func() { assert.NoError(t, l.Close()) })
			continue
		}
		require.ErrorIs(t, errs[i], gate.ErrInUse)
	}
	assert.Equal(t, 1, winners)
}

func TestListenTouchesNothingElse(t *testing.T) {
	t.Parallel()
	path := gatetest.Socket(t)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte("precious"), 0o600))
	_, err := gate.Listen(path)
	require.ErrorContains(t, err, "something else than a socket")
	assert.FileExists(t, path)

	link := filepath.Join(filepath.Dir(path), "link")
	require.NoError(t, os.Symlink(path, link))
	_, err = gate.Listen(link)
	require.Error(t, err)
	assert.FileExists(t, link)
}

func TestListenSaysThatAPathIsTooLong(t *testing.T) {
	t.Parallel()
	_, err := gate.Listen("/" + strings.Repeat("x", 107))
	require.ErrorContains(t, err, "at most 107")
}

func TestListenSaysWhatIsWrongWithTheDirectory(t *testing.T) {
	t.Parallel()
	file := gatetest.Socket(t)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := gate.Listen(filepath.Join(file, "gate.sock"))
	require.ErrorContains(t, err, "not a directory")
}

func TestCloseLeavesASuccessorsSocket(t *testing.T) {
	t.Parallel()
	path := gatetest.Socket(t)
	first, err := gate.Listen(path)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	second, err := gate.Listen(path)
	require.NoError(t, err)
	defer second.Close()
	require.NoError(t, first.Close())
	assert.FileExists(t, path)
}
