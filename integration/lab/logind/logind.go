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
	// ErrNobodyListens: no connection has asked for the signal of a shutdown.
	ErrNobodyListens = errors.New("nobody on the bus listens for PrepareForShutdown")
	// ErrDelayedTooLong: a lock was still held when the longest delay was over, and a
	// machine would have been shut down nevertheless.
	ErrDelayedTooLong = errors.New("a shutdown was delayed for longer than InhibitDelayMaxUSec")
)

// Inhibitor is a lock that delays a shutdown, in the words of who took it.
type Inhibitor struct {
	What, Who, Why, Mode string

	released chan struct{} // closed when nobody holds it any more
}

// Logind is the bus with logind on it. Make it with New. It is safe for concurrent
// use.
type Logind struct {
	delayMax time.Duration
	holders  sync.WaitGroup // who wait for the end of a lock

	mu         sync.Mutex
	conns      []*conn
	named      int // how many connections were given a name
	inhibitors []*Inhibitor
}

// New gives a bus on which logind lets a shutdown be delayed by at most delayMax. It
// starts nothing.
func New(delayMax time.Duration) *Logind { return &Logind{delayMax: delayMax} }

// Serve answers whoever connects, until ctx ends; then it closes the listener and all
// connections, forgets the locks, and returns nil once they are gone. It is to be called once. Whoever can connect may speak: the
// listener's socket is to be open to root alone. An error means that no more can
// connect.
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

// Inhibitors gives the locks that are held, the oldest first.
func (l *Logind) Inhibitors() []Inhibitor {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Inhibitor, 0, len(l.inhibitors))
	for _, i := range l.inhibitors {
		all = append(all, *i)
	}
	return all
}

// Shutdown says that the machine is about to be shut down, blocks until the locks that
// are held now are released, and gives how long that took. It gives ErrNobodyListens,
// ErrDelayedTooLong, or the error of ctx.
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

// prepareForShutdown sends logind's signal to all that listen for it.
func (l *Logind) prepareForShutdown() error {
	l.mu.Lock()
	conns := slices.Clone(l.conns)
	l.mu.Unlock()
	told := 0
	for _, c := range conns {
		sent, err := c.signal()
		if err != nil {
			return fmt.Errorf("telling %s of the shutdown: %w", c.name, err)
		}
		if sent {
			told++
		}
	}
	if told == 0 {
		return ErrNobodyListens
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
