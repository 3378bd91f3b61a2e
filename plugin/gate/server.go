package gate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
)

const (
	helloTimeout = 5 * time.Second
	// writeTimeout is for a hook that does not read its answers.
	writeTimeout = 2 * time.Second
	// undecidedPause is how long a hook that gets no verdict is kept before it can ask again.
	undecidedPause = time.Second
	// acceptPause is the wait after a failed accept, for example because too many files are open.
	acceptPause = 100 * time.Millisecond
)

// Server is the daemon's end of the gate. Make it with [NewServer].
type Server struct {
	backend      Backend
	log          logrus.FieldLogger
	helloTimeout time.Duration
	writeTimeout time.Duration
	pause        time.Duration
	aliveEvery   time.Duration
	waiting      atomic.Int32                  // hooks that wait for a verdict
	beat         atomic.Pointer[chan struct{}] // closed and replaced each time that they get an alive line
	onPanic      func()
}

// NewServer returns a server that asks b for its verdicts. It calls onPanic for each panic that it catches, including
// panics of b, and logs the panic. NewServer starts nothing.
func NewServer(b Backend, onPanic func(), log logrus.FieldLogger) *Server {
	s := &Server{
		backend:      b,
		log:          log,
		helloTimeout: helloTimeout,
		writeTimeout: writeTimeout,
		pause:        undecidedPause,
		aliveEvery:   wire.AliveEvery,
		onPanic:      onPanic,
	}
	first := make(chan struct{})
	s.beat.Store(&first)
	return s
}

// Conn is a connection of a hook, such as a [net.UnixConn].
type Conn interface {
	net.Conn
	// CloseRead makes every read return, now and later.
	CloseRead() error
}

// Serve answers the hooks that connect to l, which must accept each a [Conn],
// until ctx ends, and then returns nil. It returns an error only if l is closed
// by another or accepts something else. It closes l. When it returns, every connection
// is closed and every call of the backend has returned. Hooks that still wait get
// no verdict: they wait for the next daemon.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.accept(ctx, l, group) })
	group.Go(func() error { s.keepAlive(ctx); return nil })
	group.Go(func() error {
		<-ctx.Done()
		return l.Close()
	})
	return group.Wait()
}

func (s *Server) accept(ctx context.Context, l net.Listener, group *errgroup.Group) error {
	fails := false // it is logged
	for {
		accepted, err := l.Accept()
		switch {
		case err != nil && ctx.Err() != nil:
			return nil //nolint:nilerr // Serve closed the listener, as ctx ended
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("gate: %w", err)
		case err != nil:
			if !fails {
				s.log.WithError(err).Warn("the gate cannot accept a hook, and tries again")
			}
			fails = true
			sleep(ctx, acceptPause)
			continue
		}
		fails = false
		c, ok := accepted.(Conn)
		if !ok {
			return errors.Join(fmt.Errorf("gate: %s accepts what is no unix connection", l.Addr()), accepted.Close())
		}
		group.Go(func() error {
			hook := &conn{Conn: c, server: s, log: s.log, name: "a hook"}
			err := s.caught(func() error {
				hook.serve(ctx)
				return nil
			})
			if err != nil {
				hook.log.WithError(err).Errorf("the gate failed while it served %s, which will ask again", hook.name)
			}
			return nil
		})
	}
}

// caught calls f, and returns its error, or its panic as an error.
func (s *Server) caught(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			s.onPanic()
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return f()
}

// sleep returns after d, or when ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
