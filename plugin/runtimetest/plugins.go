package runtimetest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/ttrpc"
)

// plugins knows which plugins are connected to one session. The adaptation reports neither names nor ends of
// connections. But each plugin has a ttrpc server, and the adaptation takes one plugin at a time from connection to
// synchronisation.
type plugins struct {
	mu sync.Mutex
	// guarded by mu
	conns  []*pluginConn
	latest *pluginConn
}

// pluginConn is the connection over which a plugin registers.
type pluginConn struct {
	net.Conn
	plugins *plugins
	name    string
	synced  bool
}

// Handshake implements ttrpc.Handshaker to see a connection begin.
func (p *plugins) Handshake(_ context.Context, conn net.Conn) (net.Conn, any, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latest = &pluginConn{Conn: conn, plugins: p}
	p.conns = append(p.conns, p.latest)
	return p.latest, nil, nil
}

// Close is called by the ttrpc server when the plugin's connection has ended.
func (c *pluginConn) Close() error {
	c.plugins.mu.Lock()
	c.plugins.conns = slices.DeleteFunc(c.plugins.conns, func(other *pluginConn) bool { return other == c })
	c.plugins.mu.Unlock()
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
			p.latest.name = reg.PluginName
			p.mu.Unlock()
		}
		return nil
	})
}

// synchronized records that the plugin that connected last is synchronised.
func (p *plugins) synchronized() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.latest != nil {
		p.latest.synced = true
	}
}

func (p *plugins) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// has reports whether a synchronised plugin of that name is connected.
func (p *plugins) has(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.conns, func(c *pluginConn) bool { return c.synced && c.name == name })
}

// HasPlugin reports whether a plugin of that name is connected and synchronised.
func (r *Runtime) HasPlugin(name string) bool {
	s := r.current()
	return s != nil && s.plugins.has(name)
}

// WaitPlugin waits until a plugin of that name is connected, synchronised and gets events, or until ctx ends. While the
// runtime is down it returns ErrDown.
func (r *Runtime) WaitPlugin(ctx context.Context, name string) error {
	return r.waitPlugin(ctx, name, true)
}

// WaitPluginGone waits until no plugin of that name is connected, or until ctx
// ends. While the runtime is down it returns ErrDown.
func (r *Runtime) WaitPluginGone(ctx context.Context, name string) error {
	return r.waitPlugin(ctx, name, false)
}

func (r *Runtime) waitPlugin(ctx context.Context, name string, want bool) error {
	for {
		s := r.current()
		if s == nil {
			return ErrDown
		}
		if s.plugins.has(name) == want {
			// A plugin gets events just after it is synchronised, and joins their list under this lock.
			s.relay.nri.keepFromSync()()
			return nil
		}
		if !pause(ctx, tick) {
			return fmt.Errorf("wait for plugin %q (connected: %t): %w", name, want, context.Cause(ctx))
		}
	}
}

// DropPlugins cuts the connections of all plugins, as a crash of the connections would, and returns their number. The
// runtime continues. Plugins may connect again at once, and WaitPlugin waits for that.
func (r *Runtime) DropPlugins() (int, error) {
	s := r.current()
	if s == nil {
		return 0, ErrDown
	}
	s.plugins.mu.Lock()
	dropped := slices.Clone(s.plugins.conns)
	s.plugins.mu.Unlock()
	n := s.front.cut()
	for s.plugins.anyOf(dropped) {
		time.Sleep(tick)
	}
	return n, nil
}

// anyOf reports whether one of these connections still exists.
func (p *plugins) anyOf(conns []*pluginConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.conns, func(c *pluginConn) bool { return slices.Contains(conns, c) })
}

// pause waits. It returns false if ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
