package runtimetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// Listener is a listener in memory. A goroutine that waits at it, or at one of its connections, is durably blocked for
// testing/synctest, unlike one that waits at a socket. Make it with NewListener. It is safe for concurrent use.
type Listener struct {
	arriving chan net.Conn
	closed   chan struct{}
	close    func()
}

// NewListener returns a listener that accepts connections until it is closed.
func NewListener() *Listener {
	closed := make(chan struct{})
	return &Listener{arriving: make(chan net.Conn), closed: closed, close: sync.OnceFunc(func() { close(closed) })}
}

// Dial connects. It blocks until the connection is accepted, or returns the error of a socket at which nobody listens.
func (l *Listener) Dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.arriving <- &memoryConn{Conn: far}:
		return &memoryConn{Conn: near}, nil
	case <-l.closed:
		return nil, fmt.Errorf("dial in memory: %w", syscall.ECONNREFUSED)
	case <-ctx.Done():
		return nil, fmt.Errorf("dial in memory: %w", context.Cause(ctx))
	}
}

// Accept implements [net.Listener].
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.arriving:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener]. Connections stay. It may be called again.
func (l *Listener) Close() error { l.close(); return nil }

// Addr implements [net.Listener].
func (l *Listener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

// memoryConn is an end of a pipe whose reads can be ended for good, like those of a socket.
type memoryConn struct {
	net.Conn

	mu   sync.Mutex
	deaf bool // guarded by mu
}

// CloseRead makes reads return io.EOF, now and later.
func (c *memoryConn) CloseRead() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deaf = true
	return c.Conn.SetReadDeadline(time.Now().Add(-time.Second))
}

func (c *memoryConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deaf {
		return nil
	}
	return c.Conn.SetReadDeadline(t)
}

func (c *memoryConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil && c.deaf:
		err = io.EOF
	case errors.Is(err, io.ErrClosedPipe): // as of a socket
		err = net.ErrClosed
	}
	return n, err
}
