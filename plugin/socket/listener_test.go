package socket

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const patience = 30 * time.Second

func TestPeerAllowed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		peer, daemon uint32
		allowed      bool
	}{
		{0, 0, true}, {0, 1000, true}, {1000, 1000, true},
		{1000, 0, false}, {65534, 0, false}, {1001, 1000, false}, {1<<32 - 1, 0, false},
	} {
		assert.Equal(t, tt.allowed, peerAllowed(tt.peer, tt.daemon), "%+v", tt)
	}
}

func TestWhoIsThereOfAClosedConnection(t *testing.T) {
	t.Parallel()
	l, err := Listen(socketIn(t), nil)
	require.NoError(t, err)
	defer l.Close()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "unix", l.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	served, err := l.AcceptUnix()
	require.NoError(t, err)
	require.NoError(t, checkPeer(served, l.uid))
	require.NoError(t, served.Close())
	require.ErrorContains(t, checkPeer(served, l.uid), "who is there")
}

// Another user's connection is closed unheard and said, and the next one is served.
func TestOtherUsersAreTurnedAway(t *testing.T) {
	t.Parallel()
	said := make(chan error, 1)
	path := socketIn(t)
	l, err := Listen(path, func(why error) { said <- why })
	require.NoError(t, err)
	asRoot := os.Geteuid() == 0
	if !asRoot {
		l.uid++ // then this process is the other user
	}
	accepted := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			err = c.Close()
		}
		accepted <- err
	}()
	// Other users cannot even connect, so open the way for them first.
	for p := path; p != os.TempDir(); p = filepath.Dir(p) {
		require.NoError(t, os.Chmod(p, 0o777))
	}
	other := dialAsOther(t, path)
	_, err = other.Read(make([]byte, 1))
	require.Error(t, err, "a connection of another user was kept open")
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	require.ErrorContains(t, <-said, "is neither root nor user")

	if asRoot {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "unix", path)
		require.NoError(t, err)
		require.NoError(t, <-accepted)
		require.NoError(t, c.Close())
		require.NoError(t, l.Close())
		return
	}
	require.NoError(t, l.Close())
	require.ErrorIs(t, <-accepted, net.ErrClosed)
}

// dialAsOther connects as another user where this process may become one.
func dialAsOther(t *testing.T, path string) net.Conn {
	t.Helper()
	file := make(chan *os.File, 1)
	failed := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its other user
		if os.Geteuid() == 0 {
			const nobody = 65534
			if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
				failed <- errno
				return
			}
		}
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
		}
		failed <- err
		file <- os.NewFile(uintptr(fd), path)
	}()
	require.NoError(t, <-failed)
	f := <-file
	defer f.Close()
	c, err := net.FileConn(f)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	return c
}
