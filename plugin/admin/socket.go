package admin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// dialTimeout bounds the question whether somebody answers at a socket.
const dialTimeout = time.Second

// listen makes the unix socket at path, with mode 0600, in a folder that is made
// with mode 0700 where it is missing. A socket at which nobody answers any more
// is replaced; one at which somebody does is an error, and so is any other file.
func listen(ctx context.Context, path string) (*ownSocket, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the administrator's socket: %w", err)
	}
	if err := clearStale(ctx, path); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on the administrator's socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("protect the administrator's socket: %w", err), l.Close())
	}
	made, err := os.Lstat(path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("look at the administrator's socket: %w", err), l.Close())
	}
	l.SetUnlinkOnClose(false) // it would remove a successor's socket
	return &ownSocket{UnixListener: l, path: path, made: made}, nil
}

// ownSocket removes its file when it is closed, unless another took its place.
type ownSocket struct {
	*net.UnixListener
	path string
	made os.FileInfo
}

func (s *ownSocket) Close() error {
	if now, err := os.Lstat(s.path); err == nil && os.SameFile(s.made, now) {
		if err := os.Remove(s.path); err != nil {
			return errors.Join(err, s.UnixListener.Close())
		}
	}
	return s.UnixListener.Close()
}

// clearStale removes a socket that a daemon left behind.
func clearStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("look at the administrator's socket: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is in the way: it is not a socket", path)
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	conn, err := dialer.DialContext(ctx, "unix", path)
	if err == nil {
		return errors.Join(fmt.Errorf("another daemon answers at %s", path), conn.Close())
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("ask who is at the administrator's socket: %w", err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replace the administrator's socket: %w", err)
	}
	return nil
}

// peers is a listener that accepts some users only; others' connections are
// closed at once. The mode of the socket keeps them out already; this holds also
// where somebody has changed the mode.
type peers struct {
	*ownSocket
	uids []uint32
}

// rootAndSelf lets in root and the user of this process.
func rootAndSelf(l *ownSocket) net.Listener {
	return peers{ownSocket: l, uids: []uint32{0, uint32(os.Geteuid())}}
}

// Accept waits for a connection of one of the users.
func (p peers) Accept() (net.Conn, error) {
	for {
		conn, err := p.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if uid, err := peerUID(conn); err == nil && slices.Contains(p.uids, uid) {
			return conn, nil
		}
		// Nothing was written, so there is nothing that closing could lose.
		_ = conn.Close()
	}
}

func peerUID(conn *net.UnixConn) (uint32, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(err, credErr); err != nil {
		return 0, err
	}
	return cred.Uid, nil
}
