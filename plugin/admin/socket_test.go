package admin

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStaleSocketIsReplaced(t *testing.T) {
	t.Parallel()
	path := socketIn(t)
	old, err := listen(t.Context(), path)
	require.NoError(t, err)
	require.NoError(t, old.UnixListener.Close()) // as when its process is killed
	require.FileExists(t, path)

	l, err := listen(t.Context(), path)
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

// A daemon that leaves does not take the socket of its successor with it.
func TestTheSocketOfASuccessorStays(t *testing.T) {
	t.Parallel()
	path := socketIn(t)
	old, err := listen(t.Context(), path)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	l, err := listen(t.Context(), path)
	require.NoError(t, err)
	require.NoError(t, old.Close())
	require.FileExists(t, path)
	require.NoError(t, l.Close())
	require.NoFileExists(t, path)
}

func TestOtherFileIsLeftAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "admin.sock")
	require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
	_, err := listen(t.Context(), path)
	require.EqualError(t, err, path+" is in the way: it is not a socket")
	kept, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "mine", string(kept))
}

func TestFolderThatCannotBeMade(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := listen(t.Context(), filepath.Join(file, "run", "admin.sock"))
	require.ErrorContains(t, err, "make the folder of the administrator's socket")
}

// Another user's connection is closed unheard, and the next one is served.
func TestOtherUsersAreClosed(t *testing.T) {
	t.Parallel()
	path := socketIn(t)
	l, err := listen(t.Context(), path)
	require.NoError(t, err)
	self := uint32(os.Geteuid())
	others := peers{ownSocket: l, uids: []uint32{self + 1}}

	accepted := make(chan error, 1)
	go func() {
		conn, err := others.Accept()
		if err == nil {
			err = conn.Close()
		}
		accepted <- err
	}()
	conn := dial(t, path)
	_, err = conn.Read(make([]byte, 1))
	require.Error(t, err, "a connection of another user was kept open")
	require.NoError(t, l.Close())
	require.ErrorIs(t, <-accepted, net.ErrClosed, "a connection of another user was accepted")
}

func TestPeerUID(t *testing.T) {
	t.Parallel()
	l, err := listen(t.Context(), socketIn(t))
	require.NoError(t, err)
	defer l.Close()
	dial(t, l.Addr().String())
	served, err := l.AcceptUnix()
	require.NoError(t, err)
	defer served.Close()
	uid, err := peerUID(served)
	require.NoError(t, err)
	assert.Equal(t, uint32(os.Geteuid()), uid)

	require.NoError(t, served.Close())
	_, err = peerUID(served)
	require.Error(t, err)
}
