package keeper

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// forward listens on a free port of the host's loopback and connects callers to address inside the
// namespace, until the process ends.
func (n *namespace) forward(address string) (string, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("forwarding to %s: %w", address, err)
	}
	go func() {
		for {
			outer, err := listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				continue // the caller closed the connection before it was accepted
			}
			go n.connect(outer, address)
		}
	}()
	return listener.Addr().String(), nil
}

func (n *namespace) connect(outer net.Conn, address string) {
	defer outer.Close()
	inner, err := n.dial(address)
	if err != nil {
		return // without a server, the caller would see the same
	}
	defer inner.Close()
	var both sync.WaitGroup
	both.Go(func() { pipe(inner, outer) })
	both.Go(func() { pipe(outer, inner) })
	both.Wait()
}

// pipe copies until from ends, and then closes to for writing.
func pipe(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if half, ok := to.(*net.TCPConn); ok && err == nil && half.CloseWrite() == nil {
		return
	}
	to.Close()
	from.Close()
}
