package gate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
)

// ErrInUse says that another process answers at the socket.
var ErrInUse = errors.New("another daemon answers there")

const (
	dirMode    = 0o700
	socketMode = 0o600
)

// Listen makes the unix socket at path, for its owner only, and its directory if
// there is none. A socket that nobody answers is replaced; one that somebody
// answers is [ErrInUse]; anything else at path is an error, and stays. Closing
// the listener removes the socket, unless another took its place meanwhile.
func Listen(path string) (net.Listener, error) {
	l, err := listen(path)
	if err != nil {
		return nil, fmt.Errorf("gate socket %s: %w", path, err)
	}
	return l, nil
}

func listen(path string) (*listener, error) {
	if len(path) > wire.MaxSocketPath {
		return nil, fmt.Errorf("the path has %d bytes, a unix socket's at most %d", len(path), wire.MaxSocketPath)
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, err
	}
	// Of two daemons that begin at once the second must see the first's socket.
	unlock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	defer unlock()

	if err := removeStale(path); err != nil {
		return nil, err
	}
	// The mode of the socket before it is bound becomes the file's: at no time can
	// anybody else connect.
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var chmodErr error
		err := c.Control(func(fd uintptr) { chmodErr = unix.Fchmod(int(fd), socketMode) })
		return errors.Join(err, chmodErr)
	}}
	l, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	unixListener, ok := l.(*net.UnixListener)
	if !ok {
		return nil, errors.Join(fmt.Errorf("no unix listener but a %T", l), l.Close())
	}
	return own(unixListener, path)
}

func lockDir(dir string) (unlock func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(d.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), d.Close())
	}
	return func() { _ = d.Close() }, nil // nothing was written to it
}

func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return errors.New("there is something else than a socket")
	}
	c, err := (&net.Dialer{}).DialContext(context.Background(), "unix", path) // never blocks
	if err == nil {
		return errors.Join(ErrInUse, c.Close())
	}
	if !errors.Is(err, unix.ECONNREFUSED) {
		return fmt.Errorf("find out whether somebody answers there: %w", err)
	}
	return os.Remove(path)
}

// listener removes its socket when it is closed.
type listener struct {
	*net.UnixListener
	path string
	made os.FileInfo
}

func own(l *net.UnixListener, path string) (*listener, error) {
	l.SetUnlinkOnClose(false) // it would remove a successor's socket
	made, err := os.Lstat(path)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &listener{UnixListener: l, path: path, made: made}, nil
}

func (l *listener) Close() error {
	if now, err := os.Lstat(l.path); err == nil && os.SameFile(l.made, now) {
		if err := os.Remove(l.path); err != nil {
			return errors.Join(err, l.UnixListener.Close())
		}
	}
	return l.UnixListener.Close()
}
