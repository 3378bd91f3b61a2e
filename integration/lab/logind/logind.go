package logind

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Errors of a shutdown.
var (
	// ErrNoListener means that no connection has asked for the signal of a shutdown.
	ErrNoListener = errors.New("no connection of the bus listens for PrepareForShutdown")
	// ErrDelayedTooLong means that a lock was still held at the end of the longest delay. A real
	// machine would have been shut down then.
	ErrDelayedTooLong = errors.New("a shutdown was delayed for longer than InhibitDelayMaxUSec")
)

// Inhibitor is a lock that delays a shutdown, as its holder described it.
type Inhibitor struct {
	What, Who, Why, Mode string

	released chan struct{} // closed when the lock is released
}

// Logind is a bus with logind on it. New creates it. It is safe for concurrent use.
type Logind struct {
	delayMax time.Duration
	holders  sync.WaitGroup // goroutines that wait for the end of a lock

	mu         sync.Mutex
	conns      []*conn
	named      int // number of connections that got a name
	inhibitors []*Inhibitor
}

// New returns a bus on which a shutdown can be delayed by at most delayMax. It starts nothing.
func New(delayMax time.Duration) *Logind { return &Logind{delayMax: delayMax} }

// Serve serves all clients until ctx ends. Then it closes the listener and all connections, forgets
// the locks, and returns nil once all connections are closed. It must be called only once. It does
// not authenticate clients, so only root may have access to the listener's socket. An error means
// that no more clients can connect.
func (l *Logind) Serve(ctx context.Context, listener *net.UnixListener) error {
	g, ctx := errgroup.WithContext(ctx)
	defer l.holders.Wait()
	g.Go(func() error {
		<-ctx.Done()
		return listener.Close()
	})
	for {
		socket, err := listener.AcceptUnix()
		if err != nil {
			if ctx.Err() != nil {
				err = nil
			}
			g.Go(func() error { return err })
			break
		}
		g.Go(func() error { l.serve(ctx, socket); return nil })
	}
	return g.Wait()
}

// Inhibitors returns the held locks, the oldest first.
func (l *Logind) Inhibitors() []Inhibitor {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Inhibitor, 0, len(l.inhibitors))
	for _, i := range l.inhibitors {
		all = append(all, *i)
	}
	return all
}

// Shutdown announces a shutdown of the machine, waits until the locks that are held now are
// released, and returns how long that took. It returns ErrNoListener, ErrDelayedTooLong, or the
// error of ctx.
func (l *Logind) Shutdown(ctx context.Context) (took time.Duration, err error) {
	held := l.Inhibitors()
	begin := time.Now()
	if err := l.prepareForShutdown(); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, l.delayMax, ErrDelayedTooLong)
	defer cancel()
	for _, i := range held {
		select {
		case <-i.released:
		case <-ctx.Done():
			return time.Since(begin), fmt.Errorf("waiting for %s: %w", i.Who, context.Cause(ctx))
		}
	}
	return time.Since(begin), nil
}

// prepareForShutdown sends logind's signal to all connections that listen for it.
func (l *Logind) prepareForShutdown() error {
	l.mu.Lock()
	conns := slices.Clone(l.conns)
	l.mu.Unlock()
	told := 0
	for _, c := range conns {
		sent, err := c.signal()
		if err != nil {
			return fmt.Errorf("sending %s the signal of the shutdown: %w", c.name, err)
		}
		if sent {
			told++
		}
	}
	if told == 0 {
		return ErrNoListener
	}
	return nil
}

// join gives a connection its name.
func (l *Logind) join(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.named++
	c.name = fmt.Sprintf(":1.%d", l.named)
	l.conns = append(l.conns, c)
}

func (l *Logind) leave(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = slices.DeleteFunc(l.conns, func(o *conn) bool { return o == c })
}
