// Package rundir is what a daemon has in its run folder: its sockets, to which only root and the daemon's own user can
// connect, and the lock, which one of the daemons that use the folder has. [ServeShared] makes a socket for other users.
package rundir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	dirMode    = 0o700
	socketMode = 0o600
	sharedMode = 0o666
	// lookEvery is the time between two looks whether a socket is still there.
	lookEvery = 10 * time.Second
)

// Listening is the type of [Serve].
type Listening func(ctx context.Context, path string, serve func(context.Context, net.Listener) error) error

// Serve calls serve with a listener from [Listen] and returns its error. If another program removes or replaces the
// socket, Serve ends that call within 10 s, through its context, and begins anew: whoever is connected has to connect
// again. It blocks until serve returns. serve must return nil when its context ends, and close the listener.
func Serve(ctx context.Context, path string, serve func(context.Context, net.Listener) error) error {
	return serveWith(ctx, path, socketMode, serve)
}

// ServeShared is [Serve] with a socket to which every user can connect who can reach its folder.
func ServeShared(ctx context.Context, path string, serve func(context.Context, net.Listener) error) error {
	return serveWith(ctx, path, sharedMode, serve)
}

func serveWith(ctx context.Context, path string, mode uint32, serve func(context.Context, net.Listener) error) error {
	for ctx.Err() == nil {
		l, err := Listen(path, mode)
		if err != nil {
			return err
		}
		one, end := context.WithCancel(ctx)
		go func() { awaitGone(one, path); end() }()
		err = serve(one, l)
		end()
		if err != nil {
			return err
		}
	}
	return nil
}

// awaitGone blocks until the file at path is no longer the same one, or ctx ends.
func awaitGone(ctx context.Context, path string) {
	mine, _ := os.Lstat(path)
	_ = wait.PollUntilContextCancel(ctx, lookEvery, false, func(context.Context) (gone bool, _ error) {
		now, err := os.Lstat(path)
		return err != nil || !os.SameFile(mine, now), nil //nolint:nilerr // an error says that it is gone
	}) // the only error is that ctx ended
}

// Listen creates the unix socket at path, and its directory if that is missing. Whoever its mode lets write can connect.
// Listen replaces a socket that exists: a daemon listens only while it holds the lock of its run folder, so the socket is
// left from a daemon that has ended. Anything else at path is an error, and stays. Listen does not block. Closing the
// listener removes the socket.
func Listen(path string, mode uint32) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), dirMode); err != nil {
		return nil, err
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != fs.ModeSocket {
		return nil, fmt.Errorf("%s is something else than a socket: remove it", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	// The file gets its mode before the socket listens: at no time can another user connect.
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var chmodErr error
		err := c.Control(func(fd uintptr) { chmodErr = unix.Fchmod(int(fd), mode) })
		return errors.Join(err, chmodErr)
	}}
	l, err := config.Listen(context.Background(), "unix", path)
	if err != nil || mode == socketMode {
		return l, err
	}
	if err := os.Chmod(path, os.FileMode(mode)); err != nil { // the umask has taken rights away
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}
