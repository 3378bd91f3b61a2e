package admin

import (
	"cmp"
	"context"
	"crypto/tls"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
)

// connLimit limits the connections to a server that everybody can reach. A new connection never waits. If there are too
// many, connLimit closes one of the client with the most connections: the oldest one without a request under way, or
// else the oldest one. So clients that connect and stay silent cannot block others. A client is an address without its
// port.
type connLimit struct {
	most int

	mu    sync.Mutex
	conns map[net.Conn]*openConn
	count uint64 // of all connections so far
}

// openConn is an open connection.
type openConn struct {
	client string
	order  uint64 // the value of count when it was opened
	busy   int    // requests under way
}

// connKey is the key of the connection in a request's context.
type connKey struct{}

// limitConns limits the number of connections of srv.
func limitConns(srv *http.Server, most int) {
	c := &connLimit{most: most, conns: map[net.Conn]*openConn{}}
	srv.ConnState = func(conn net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			c.opened(conn)
		case http.StateClosed, http.StateHijacked:
			c.closed(conn)
		}
	}
	srv.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, conn)
	}
	answer := srv.Handler
	srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _ := r.Context().Value(connKey{}).(net.Conn)
		c.countBusy(conn, 1)
		defer c.countBusy(conn, -1)
		answer.ServeHTTP(w, r)
	})
}

func (c *connLimit) opened(conn net.Conn) {
	client, _, _ := net.SplitHostPort(conn.RemoteAddr().String()) // a TCP address has a port
	c.mu.Lock()
	c.count++
	c.conns[conn] = &openConn{client: client, order: c.count}
	surplus := c.surplusLocked()
	delete(c.conns, surplus)
	c.mu.Unlock()
	if secure, ok := surplus.(*tls.Conn); ok {
		surplus = secure.NetConn() // Close of a TLS connection writes to the client, which may not read
	}
	if surplus != nil {
		_ = surplus.Close() // this ends the server's goroutine
	}
}

func (c *connLimit) closed(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, conn)
}

func (c *connLimit) countBusy(conn net.Conn, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g := c.conns[conn]; g != nil {
		g.busy += n
	}
}

// surplusLocked returns the connection to close, or nil.
func (c *connLimit) surplusLocked() net.Conn {
	if len(c.conns) <= c.most {
		return nil
	}
	of := map[string]int{}
	for _, g := range c.conns {
		of[g.client]++
	}
	return slices.MinFunc(slices.Collect(maps.Keys(c.conns)), func(a, b net.Conn) int {
		x, y := c.conns[a], c.conns[b]
		return cmp.Or(cmp.Compare(of[y.client], of[x.client]), cmp.Compare(min(x.busy, 1), min(y.busy, 1)), cmp.Compare(x.order, y.order))
	})
}

// few serves at most this many requests at a time, and refuses others.
func few(most int, h http.HandlerFunc) http.HandlerFunc {
	places := make(chan struct{}, most)
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
			h(w, r)
		default:
			http.Error(w, "too many concurrent requests", http.StatusServiceUnavailable)
		}
	}
}
