package runtimetest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/ttrpc"
)

// plugins knows which plugins are connected to one session. The adaptation tells
// neither names nor ends of connections, but each plugin has a ttrpc server, and it
// handles one plugin's way from connection to synchronisation at a time.
type plugins struct {
	socket string

	mu sync.Mutex
	// guarded by mu
	conns   []*pluginConn
	latest  *pluginConn
	changed chan struct{} // closed and replaced at each change
}

// pluginConn is the connection over which a plugin registers.
type pluginConn struct {
	net.Conn
	plugins *plugins
	index   string
	name    string
	synced  bool
	dropped bool
}

func newPlugins(socket string) *plugins {
	return &plugins{socket: socket, changed: make(chan struct{})}
}

// Handshake implements ttrpc.Handshaker to see a connection begin.
func (p *plugins) Handshake(_ context.Context, conn net.Conn) (net.Conn, any, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &pluginConn{Conn: conn, plugins: p}
	p.conns = append(p.conns, c)
	p.latest = c
	p.changedLocked()
	return c, nil, nil
}

// Close is called by the ttrpc server when the plugin's connection has ended.
func (c *pluginConn) Close() error {
	p := c.plugins
	p.mu.Lock()
	p.conns = slices.DeleteFunc(p.conns, func(other *pluginConn) bool { return other == c })
	p.changedLocked()
	p.mu.Unlock()
	return c.Conn.Close()
}

// intercept is a ttrpc interceptor that reads the name from the registration.
func (p *plugins) intercept(ctx context.Context, unmarshal ttrpc.Unmarshaler, _ *ttrpc.UnaryServerInfo, method ttrpc.Method) (any, error) {
	return method(ctx, func(msg any) error {
		if err := unmarshal(msg); err != nil {
			return err
		}
		if reg, ok := msg.(*api.RegisterPluginRequest); ok {
			p.mu.Lock()
			p.latest.index, p.latest.name = reg.PluginIdx, reg.PluginName
			p.mu.Unlock()
		}
		return nil
	})
}

// synchronized notes that the plugin which connected last has been synchronised.
func (p *plugins) synchronized() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.latest != nil {
		p.latest.synced = true
		p.changedLocked()
	}
}

func (p *plugins) changedLocked() {
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *plugins) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// has tells whether a synchronised plugin of that name ("name" or "05-name") is
// connected, and gives a channel that is closed at the next change.
func (p *plugins) has(name string) (bool, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.conns, func(c *pluginConn) bool {
		return c.synced && !c.dropped && (c.name == name || c.index+"-"+c.name == name)
	}), p.changed
}

// WaitPlugin waits until a plugin of that name, with or without its index ("05-name"),
// is connected, synchronised and gets events, or until ctx ends. While the runtime
// is down it returns ErrDown.
func (r *Runtime) WaitPlugin(ctx context.Context, name string) error {
	s, err := r.waitPlugins(ctx, name, true)
	if err != nil {
		return err
	}
	// The plugin is put on the list of those that get events just after it is synchronised,
	// under this lock.
	s.relay.nri.BlockPluginSync().Unblock()
	return nil
}

// WaitPluginGone waits until no plugin of that name is connected, or until ctx
// ends. While the runtime is down it returns ErrDown.
func (r *Runtime) WaitPluginGone(ctx context.Context, name string) error {
	_, err := r.waitPlugins(ctx, name, false)
	return err
}

func (r *Runtime) waitPlugins(ctx context.Context, name string, want bool) (*session, error) {
	s := r.current()
	if s == nil {
		return nil, ErrDown
	}
	for {
		has, changed := s.plugins.has(name)
		if has == want {
			return s, nil
		}
		select {
		case <-changed:
		case <-s.ctx.Done():
			return nil, ErrDown
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for plugin %q (connected: %t): %w", name, want, context.Cause(ctx))
		}
	}
}
