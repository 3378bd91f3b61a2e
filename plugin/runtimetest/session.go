package runtimetest

import (
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/containerd/nri/pkg/adaptation"
	validator "github.com/containerd/nri/plugins/default-validator/builtin"
	"github.com/containerd/ttrpc"
)

// session is one life of the containerd process: from a Start to the next Kill or Stop.
type session struct {
	relay   *relay
	plugins *plugins
	front   *front
	memory  *Listener       // where plugins connect in memory; else nil
	ctx     context.Context // ends with the session, with cause ErrDown
	cancel  context.CancelCauseFunc
	calls   sync.WaitGroup // requests under way; none is added once the session has ended
}

func startSession(r *Runtime) (*session, error) {
	s := &session{plugins: &plugins{}}
	s.relay = newRelay(r, s.plugins)
	server := []ttrpc.ServerOpt{ttrpc.WithServerHandshaker(s.plugins), ttrpc.WithUnaryServerInterceptor(s.plugins.intercept)}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	if r.opts.InMemory {
		inner := NewListener()
		n := &memoryNRI{
			name: runtimeName, version: r.opts.Version, timeout: r.opts.RequestTimeout, synchronize: s.relay.synchronize,
			server: server, listener: inner, syncing: newSharedLock(), calling: newLock(), ended: r.endsItself, rejects: r.opts.Rejects,
		}
		s.relay.nri = n
		go n.accept()
		s.memory = NewListener()
		s.front = openFront(s.memory, func() (net.Conn, error) { return inner.Dial(s.ctx) })
		return s, nil
	}
	nri, err := adaptation.New(runtimeName, r.opts.Version, s.relay.synchronize, s.relay.update,
		adaptation.WithSocketPath(r.innerSocket()),
		adaptation.WithPluginPath(filepath.Join(r.opts.Dir, "no-plugins")),
		adaptation.WithPluginConfigPath(filepath.Join(r.opts.Dir, "no-config")),
		adaptation.WithTTRPCOptions(nil, server),
		adaptation.WithDefaultValidator(&validator.DefaultValidatorConfig{
			Enable:                  r.opts.RejectHooks,
			RejectOCIHookAdjustment: r.opts.RejectHooks,
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("make the NRI adaptation: %w", err)
	}
	s.relay.nri = realNRI{nri}
	if err := nri.Start(); err != nil {
		return nil, fmt.Errorf("start the NRI adaptation: %w", err)
	}
	l, err := net.Listen("unix", r.Socket())
	if err != nil {
		nri.Stop()
		return nil, fmt.Errorf("listen for plugins: %w", err)
	}
	s.front = openFront(l, func() (net.Conn, error) {
		return net.DialUnix("unix", nil, &net.UnixAddr{Name: r.innerSocket(), Net: "unix"})
	})
	return s, nil
}

// close ends the session. It cuts the connections first, because a handler that waits keeps the adaptation's lock.
func (s *session) close() {
	s.cancel(ErrDown)
	s.front.close()
	s.relay.nri.Stop()
	for s.plugins.count() > 0 {
		time.Sleep(tick)
	}
	s.calls.Wait()
}

// front is the socket, or its place in memory, to which plugins connect. It passes each connection on to the
// adaptation. The adaptation does not expose its own connections, and does not close them when it is stopped.
type front struct {
	listener net.Listener
	inner    func() (net.Conn, error)
	accepted chan struct{}  // closed when no more connections are accepted
	carrying sync.WaitGroup // counts the goroutines of connections

	mu sync.Mutex
	// guarded by mu
	conns map[net.Conn]struct{} // the plugins' ends
}

func openFront(l net.Listener, inner func() (net.Conn, error)) *front {
	f := &front{listener: l, inner: inner, accepted: make(chan struct{}), conns: make(map[net.Conn]struct{})}
	go f.accept()
	return f
}

func (f *front) accept() {
	defer close(f.accepted)
	for {
		plugin, err := f.listener.Accept()
		if err != nil {
			return // the listener was closed
		}
		runtime, err := f.inner()
		if err != nil {
			plugin.Close()
			continue
		}
		f.mu.Lock()
		f.conns[plugin] = struct{}{}
		f.mu.Unlock()
		f.carrying.Go(func() { f.carry(plugin, runtime) })
		f.carrying.Go(func() { f.carry(runtime, plugin) })
	}
}

// carry copies from one end to the other until either is closed. Then it closes both.
func (f *front) carry(from, to net.Conn) {
	_, _ = io.Copy(to, from) // fails when either end is closed
	from.Close()
	to.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, from)
	delete(f.conns, to)
}

// cut closes all connections and returns their number.
func (f *front) cut() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		c.Close()
	}
	return len(f.conns)
}

func (f *front) close() {
	f.listener.Close()
	<-f.accepted
	f.cut()
	f.carrying.Wait()
}
