package socket

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
)

const (
	dirMode    = 0o700
	socketMode = 0o600
	// maxPath is the longest path that the kernel takes, without the NUL at its end.
	maxPath = len(unix.RawSockaddrUnix{}.Path) - 1
)

// Listen makes the unix socket at path, for its owner and root only, and its directory if
// there is none. It replaces a socket that is there: a daemon listens only while it has
// the lock of its run folder, so that it is one of a daemon that is gone. Anything else at
// path is an error, and stays. Listen does not block. To close the listener removes the socket.
func Listen(path string) (l net.Listener, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("socket %s: %w", path, err)
		}
	}()
	if len(path) > maxPath {
		return nil, fmt.Errorf("the path has %d bytes, a unix socket's at most %d", len(path), maxPath)
	}
	if err := os.MkdirAll(filepath.Dir(path), dirMode); err != nil {
		return nil, err
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	// The mode of the socket before it is bound becomes the file's: at no time can
	// another user connect.
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var chmodErr error
		err := c.Control(func(fd uintptr) { chmodErr = unix.Fchmod(int(fd), socketMode) })
		return errors.Join(err, chmodErr)
	}}
	return config.Listen(context.Background(), "unix", path)
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
	return os.Remove(path)
}
