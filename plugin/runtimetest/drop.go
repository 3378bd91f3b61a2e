package runtimetest

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// openFiles lists this process's file descriptors.
const openFiles = "/proc/self/fd"

// DropPlugins cuts the connections of all plugins, as a crash of the connection does,
// and returns how many there were. The runtime goes on; plugins may connect again at
// once, and WaitPlugin waits for that.
func (r *Runtime) DropPlugins() (int, error) {
	s := r.current()
	if s == nil {
		return 0, ErrDown
	}
	return s.plugins.drop()
}

// drop shuts every accepted connection of the socket down and returns their number.
// The adaptation keeps its connections to itself, but the kernel gives each the name of
// the socket it came in by. A duplicate is looked at once more, because it cannot be
// replaced by another connection meanwhile.
func (p *plugins) drop() (int, error) {
	p.mu.Lock()
	for _, c := range p.conns {
		c.dropped = true
	}
	p.mu.Unlock()
	entries, err := os.ReadDir(openFiles)
	if err != nil {
		return 0, fmt.Errorf("find the plugins' connections: %w", err)
	}
	n := 0
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			return n, fmt.Errorf("find the plugins' connections: %w", err)
		}
		if !acceptedBy(fd, p.socket) {
			continue
		}
		dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			continue // closed since it was listed
		}
		if acceptedBy(dup, p.socket) && unix.Shutdown(dup, unix.SHUT_RDWR) == nil {
			n++
		}
		if err := unix.Close(dup); err != nil {
			return n, fmt.Errorf("close a copied descriptor: %w", err)
		}
	}
	return n, nil
}

// acceptedBy tells whether fd is a connection that was accepted at the unix socket.
func acceptedBy(fd int, socket string) bool {
	name, err := unix.Getsockname(fd)
	if err != nil {
		return false
	}
	addr, ok := name.(*unix.SockaddrUnix)
	if !ok || addr.Name != socket {
		return false
	}
	listening, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	return err == nil && listening == 0
}
