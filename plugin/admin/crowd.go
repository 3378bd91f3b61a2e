package admin

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// crowd bounds the connections to a server that everybody can reach. It never lets
// a newcomer wait: where there are too many connections, it closes one of the
// client that has the most, if possible one that asks nothing at the moment, and
// of these the oldest. So clients that connect and stay silent cannot keep others
// from being answered. A client is an address without its port.
type crowd struct {
	most int

	mu     sync.Mutex
	guests map[net.Conn]*guest
	joined uint64
}

// guest is a connection.
type guest struct {
	client string
	order  uint64 // the number of connections before it, and itself
	busy   int    // requests of it that are being answered
}

// guestKey is the key of a request's connection.
type guestKey struct{}

// bound limits the number of connections of srv.
func bound(srv *http.Server, most int) {
	c := &crowd{most: most, guests: map[net.Conn]*guest{}}
	srv.ConnState = func(conn net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			c.join(conn)
		case http.StateClosed, http.StateHijacked:
			c.leave(conn)
		}
	}
	srv.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, guestKey{}, conn)
	}
	answer := srv.Handler
	srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _ := r.Context().Value(guestKey{}).(net.Conn)
		c.occupy(conn, 1)
		defer c.occupy(conn, -1)
		answer.ServeHTTP(w, r)
	})
}

func (c *crowd) join(conn net.Conn) {
	client, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		client = conn.RemoteAddr().String()
	}
	c.mu.Lock()
	c.joined++
	c.guests[conn] = &guest{client: client, order: c.joined}
	victim := c.victimLocked()
	delete(c.guests, victim)
	c.mu.Unlock()
	if victim != nil {
		_ = transport(victim).Close() // its server's goroutine ends by that
	}
}

// transport returns what a connection goes by. To close one of TLS itself is to write to its client, which may not read.
func transport(conn net.Conn) net.Conn {
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		return secure.NetConn()
	}
	return conn
}

func (c *crowd) leave(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.guests, conn)
}

func (c *crowd) occupy(conn net.Conn, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g := c.guests[conn]; g != nil {
		g.busy += n
	}
}

// victimLocked returns the connection to close; nil: none. c.mu must be held.
func (c *crowd) victimLocked() (victim net.Conn) {
	if len(c.guests) <= c.most {
		return nil
	}
	of := map[string]int{}
	for _, g := range c.guests {
		of[g.client]++
	}
	worse := func(a, b *guest) bool {
		switch {
		case of[a.client] != of[b.client]:
			return of[a.client] > of[b.client]
		case (a.busy == 0) != (b.busy == 0):
			return a.busy == 0
		default:
			return a.order < b.order
		}
	}
	for conn, g := range c.guests {
		if victim == nil || worse(g, c.guests[victim]) {
			victim = conn
		}
	}
	return victim
}

// few answers at most this many requests at a time, and refuses others.
func few(most int, h http.HandlerFunc) http.HandlerFunc {
	places := make(chan struct{}, most)
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
			h(w, r)
		default:
			say(w, http.StatusServiceUnavailable, "too many ask this at a time")
		}
	}
}
