package runtimetest

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/containerd/nri/pkg/adaptation"
	validator "github.com/containerd/nri/plugins/default-validator/builtin"
	"github.com/containerd/ttrpc"
)

// dropInterval is the pause between two looks for connections that are still
// open while a session closes.
const dropInterval = 2 * time.Millisecond

// session is one life of the containerd process: from a Start to the next Kill or Stop.
type session struct {
	relay   *relay
	plugins *plugins
	ctx     context.Context // ends with the session, with cause ErrDown
	cancel  context.CancelCauseFunc
	endLog  func() // NRI's messages no longer go to the runtime's log

	mu sync.Mutex
	// guarded by mu
	closed bool
	calls  sync.WaitGroup // requests under way; none is added once closed
}

func startSession(r *Runtime) (*session, error) {
	s := &session{plugins: newPlugins(r.Socket()), endLog: nriLogs.add(r.log)}
	if err := s.start(r); err != nil {
		s.endLog()
		return nil, err
	}
	return s, nil
}

func (s *session) start(r *Runtime) error {
	if _, err := s.plugins.drop(); err != nil { // there are none yet, but close depends on it
		return err
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.relay = &relay{runtime: r, plugins: s.plugins, log: r.log, state: make(map[string]relayState)}
	nri, err := adaptation.New(r.opts.Name, r.opts.Version, s.relay.synchronize, s.relay.update,
		adaptation.WithSocketPath(r.Socket()),
		adaptation.WithPluginPath(filepath.Join(r.opts.Dir, "no-plugins")),
		adaptation.WithPluginConfigPath(filepath.Join(r.opts.Dir, "no-config")),
		adaptation.WithTTRPCOptions(nil, []ttrpc.ServerOpt{
			ttrpc.WithServerHandshaker(s.plugins),
			ttrpc.WithUnaryServerInterceptor(s.plugins.intercept),
		}),
		adaptation.WithDefaultValidator(&validator.DefaultValidatorConfig{
			Enable:                  r.opts.RejectHooks,
			RejectOCIHookAdjustment: r.opts.RejectHooks,
		}),
	)
	if err != nil {
		return fmt.Errorf("make the NRI adaptation: %w", err)
	}
	s.relay.nri = nri
	if err := nri.Start(); err != nil {
		return fmt.Errorf("start the NRI adaptation: %w", err)
	}
	return nil
}

// close ends the session. The adaptation closes only its listener, so the
// connections are cut here, again and again until none is left: one may have been
// accepted a moment ago, and a handler that waits keeps the adaptation's lock.
func (s *session) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel(ErrDown)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.relay.nri.Stop()
	}()
	for down := false; ; {
		cut, err := s.plugins.drop()
		if err != nil {
			s.relay.log.WithError(err).Warn("Cutting the plugins' connections failed, trying again")
		} else if down && cut == 0 && s.plugins.count() == 0 {
			break
		}
		select {
		case <-stopped:
			down, stopped = true, nil
		case <-time.After(dropInterval):
		}
	}
	s.calls.Wait()
	s.endLog()
}

// begin opens a request: it returns the current session and a context that ends with
// ctx or with the session. The caller must call end.
func (r *Runtime) begin(ctx context.Context) (s *session, callCtx context.Context, end func(), err error) {
	s = r.current()
	if s == nil {
		return nil, nil, nil, ErrDown
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, nil, ErrDown
	}
	s.calls.Add(1)
	callCtx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(ErrDown) })
	return s, callCtx, func() {
		stop()
		cancel(nil)
		s.calls.Done()
	}, nil
}
