package waiter

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// Host is what a waiter needs of the operating system. Its own process is the default; the tests of a whole node run many
// waiters in one process. Descriptors are not negative. Only Await blocks.
type Host interface {
	// Connect connects to the socket at path, sends the hello, and returns a descriptor of the connection.
	Connect(path string, hello []byte) (fd int, err error)
	// Read reads what has arrived. It returns 0 and nil if the connection was closed, and unix.EAGAIN if there is nothing.
	Read(fd int, p []byte) (int, error)
	// Lock takes the lock of a folder, which Close releases. It returns unix.EWOULDBLOCK if another process has it.
	Lock(folder string) (fd int, err error)
	Close(fd int)
	// Await blocks until the parent has ended, or the connection fd, if it is not negative, can be read, or the timeout is
	// over. It returns which happened.
	Await(fd int, timeout time.Duration) (orphaned, answered bool, err error)
	// Orphaned reports whether the parent has ended.
	Orphaned() bool
}

// kernel is the Host of a process of its own.
type kernel struct{ parent parent }

func (kernel) Connect(path string, hello []byte) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
	if err == nil {
		// The buffer of a new socket has room for the whole hello.
		var n int
		if n, err = unix.Write(fd, hello); err == nil && n < len(hello) {
			err = errClosed
		}
	}
	if err != nil {
		_ = unix.Close(fd) // no data can be lost
		return -1, err
	}
	return fd, nil
}

func (kernel) Read(fd int, p []byte) (int, error) { return unix.Read(fd, p) }

func (kernel) Lock(folder string) (int, error) {
	fd, err := unix.Open(folder, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = unix.Close(fd) // nothing was written
		return -1, err
	}
	return fd, nil
}

func (kernel) Close(fd int) { _ = unix.Close(fd) } // no data can be lost

func (k kernel) Await(fd int, timeout time.Duration) (orphaned, answered bool, err error) {
	limit := unix.NsecToTimespec(int64(timeout))
	fds := [...]unix.PollFd{ // the kernel ignores negative ones
		{Fd: k.parent.fd, Events: unix.POLLIN},
		{Fd: int32(fd), Events: unix.POLLIN},
	}
	if _, err := unix.Ppoll(fds[:], &limit, nil); err != nil && !errors.Is(err, unix.EINTR) {
		return false, false, err
	}
	return fds[0].Revents != 0, fds[1].Revents != 0, nil
}

func (k kernel) Orphaned() bool { return k.parent.gone() }
