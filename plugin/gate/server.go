package gate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
)

const (
	helloTimeout = 5 * time.Second
	// writeTimeout bounds what a hook that does not read can hold up: its own
	// connection.
	writeTimeout = 2 * time.Second
	// undecidedPause keeps hooks that get no verdict from asking in a tight circle.
	undecidedPause = time.Second
	// acceptPause is the wait after a failed accept, as with too many open files.
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
	alive        *pulse
	otherVersion sync.Once // says that hooks of another version wait
	onPanic      func()
}

// NewServer returns a server that lets b decide. onPanic is called for every panic that is caught, also of those of
// the backend; each is logged as well. It starts nothing.
func NewServer(b Backend, onPanic func(), log logrus.FieldLogger) *Server {
	return &Server{
		backend:      b,
		log:          log,
		helloTimeout: helloTimeout,
		writeTimeout: writeTimeout,
		pause:        undecidedPause,
		aliveEvery:   wire.AliveEvery,
		alive:        newPulse(),
		onPanic:      onPanic,
	}
}

// Serve answers the hooks that connect to l, which must accept unix connections,
// until ctx ends, and then returns nil; it returns early only if l fails for
// good. It closes l. When it returns, every connection is closed and every call
// of the backend has returned. Hooks that still wait then get no verdict: they
// wait for the next daemon.
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
	for {
		accepted, err := s.acceptOne(l)
		if ctx.Err() != nil {
			return hangUp(accepted)
		}
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("gate: %w", err)
		}
		if err != nil {
			s.log.WithError(err).Warn("the gate cannot accept a hook")
			sleep(ctx, acceptPause)
			continue
		}
		c, ok := accepted.(*net.UnixConn)
		if !ok {
			return errors.Join(fmt.Errorf("gate: %s is no unix socket", l.Addr()), hangUp(accepted))
		}
		group.Go(func() error {
			if err := s.caught(func() { s.serve(ctx, c) }); err != nil {
				s.log.WithError(err).Error("the gate fails with a hook, which will ask again")
			}
			return nil
		})
	}
}

// acceptOne accepts, and turns a panic into an error.
func (s *Server) acceptOne(l net.Listener) (c net.Conn, err error) {
	if panicked := s.caught(func() { c, err = l.Accept() }); panicked != nil {
		return nil, panicked
	}
	return c, err
}

// caught calls f, and turns its panic into an error.
func (s *Server) caught(f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			s.onPanic()
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	f()
	return nil
}

// hangUp closes c if there is one.
func hangUp(c net.Conn) error {
	if c == nil {
		return nil
	}
	return c.Close()
}

// sleep waits for d or the end of ctx.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
