package keeper

import (
	"errors"
	"fmt"
	"net"
	"runtime"

	"golang.org/x/sys/unix"
)

// NodeIP is the address of the run's node inside the run's network namespace, beside 127.0.0.1.
// Every run has its own namespace, so all runs use the same address.
const NodeIP = "10.213.0.1"

// namespace runs functions, and thereby starts processes, inside a new network namespace. A
// namespace belongs to a thread, which one goroutine keeps.
type namespace struct {
	work chan func()
}

// newNamespace creates a network namespace with its loopback device up and NodeIP on it. It lasts
// as long as this process or a process started within it.
func newNamespace() (*namespace, error) {
	n := &namespace{work: make(chan func())}
	made := make(chan error)
	go func() {
		// The thread is never unlocked: no other goroutine can use it.
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			made <- fmt.Errorf("making a network namespace: %w", err)
			return
		}
		if err := loopbackUp(); err != nil {
			made <- fmt.Errorf("setting up the loopback device: %w", err)
			return
		}
		close(made)
		for f := range n.work {
			f()
		}
	}()
	return n, <-made
}

// do runs f inside the namespace and waits for it.
func (n *namespace) do(f func()) {
	done := make(chan struct{})
	n.work <- func() {
		defer close(done)
		f()
	}
	<-done
}

// dial connects to a TCP address inside the namespace.
func (n *namespace) dial(address string) (conn net.Conn, err error) {
	tcp, err := net.ResolveTCPAddr("tcp4", address)
	if err != nil {
		return nil, err
	}
	// DialTCP creates its socket on the calling thread if it gets a resolved address.
	n.do(func() { conn, err = net.DialTCP("tcp4", nil, tcp) })
	return conn, err
}

// loopbackUp sets the calling thread's loopback device up.
func loopbackUp() (err error) {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Close(s)) }()
	device, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	device.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, device); err != nil {
		return err
	}
	// An alias keeps 127.0.0.1, which came with the device.
	alias, err := unix.NewIfreq("lo:node")
	if err != nil {
		return err
	}
	if err := alias.SetInet4Addr(net.ParseIP(NodeIP).To4()); err != nil {
		return err
	}
	if err := unix.IoctlIfreq(s, unix.SIOCSIFADDR, alias); err != nil {
		return err
	}
	if err := alias.SetInet4Addr(net.IPv4bcast.To4()); err != nil {
		return err
	}
	return unix.IoctlIfreq(s, unix.SIOCSIFNETMASK, alias)
}
