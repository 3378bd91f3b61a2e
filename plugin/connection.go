package plugin

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"
	"github.com/containerd/ttrpc"
	"github.com/sirupsen/logrus"
)

// Bounds of the back-off between two attempts to connect.
const (
	retryFirst = 200 * time.Millisecond
	retryMost  = 5 * time.Second
	// abandonStub is how long the stub may take to notice that its connection is
	// gone; one that hangs is left behind.
	abandonStub = 5 * time.Second
)

var errNotConnected = errors.New("not connected to the runtime yet")

// connection keeps the daemon registered with the runtime. Made by
// newConnection; the state may be asked at any time.
type connection struct {
	options Options
	pacer   *pacer
	log     logrus.FieldLogger

	first     sync.Once
	firstSync chan struct{} // closed once the runtime has told what it runs

	mu            sync.Mutex
	connected     bool
	synchronized  bool
	name, version string
	lastError     error
}

func newConnection(o Options, p *pacer) *connection {
	return &connection{
		options: o, pacer: p, log: o.Log, lastError: errNotConnected, firstSync: make(chan struct{}),
	}
}

// run connects, serves and connects again until ctx ends. It never gives up.
func (c *connection) run(ctx context.Context) error {
	wait := retryFirst
	for {
		synchronized, err := c.serve(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // The end of ctx is why serve failed, and no fault.
		}
		if synchronized {
			wait = retryFirst
		}
		c.lost(err)
		// Full jitter: a hundred daemons of a machine park do not come in step.
		pause := time.Duration(rand.Int64N(int64(wait))) + wait/2
		c.log.WithError(err).WithField("retry_in", pause.Round(time.Millisecond)).Warn("no connection to the runtime: pods start unpaced")
		wait = min(2*wait, retryMost)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// serve lives as long as one connection. synchronized tells whether it was in
// use.
func (c *connection) serve(ctx context.Context) (synchronized bool, err error) {
	var dialer net.Dialer
	raw, err := dialer.DialContext(ctx, "unix", c.options.NRISocket)
	if err != nil {
		return false, fmt.Errorf("NRI socket: %w (is NRI enabled in containerd's configuration?)", err)
	}
	conn := &watchedConn{Conn: raw, closed: make(chan struct{})}
	defer conn.Close()
	process := runtimeProcess(c.options.ProcRoot, raw)
	h := &handlers{p: c.pacer, synchronized: c.becameSynchronized}
	st, err := stub.New(h,
		stub.WithPluginName(c.options.pluginName()), stub.WithPluginIdx(c.options.NRIIndex),
		stub.WithConnection(conn), stub.WithOnClose(func() { conn.Close() }),
		stub.WithTTRPCOptions(nil, []ttrpc.ServerOpt{ttrpc.WithUnaryServerInterceptor(c.intercept)}),
		stub.WithLogger(stubLog{c.log}))
	if err != nil {
		return false, fmt.Errorf("NRI stub: %w", err)
	}
	h.configured = func(runtime, version string) { c.configured(runtime, version, process, st.RequestTimeout()) }
	done := make(chan error, 1)
	go func() { done <- st.Run(ctx) }()
	select {
	case err = <-done:
	case <-conn.closed:
		err = c.awaitStub(done)
	case <-ctx.Done():
		err = c.awaitStub(done)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		err = errors.New("the runtime closed the connection")
	}
	return c.synchronized, err
}

// intercept is around every call of the runtime: a panic outside of the handlers,
// which catch their own, does not end the daemon either, and the runtime goes on.
func (c *connection) intercept(ctx context.Context, decode ttrpc.Unmarshaler, call *ttrpc.UnaryServerInfo, method ttrpc.Method) (reply any, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			c.pacer.panicked(call.FullMethod, fault, nil)
			// No field set is the same message for every type: "go on, as it is".
			reply, err = &api.Empty{}, nil
		}
	}()
	return method(ctx, decode)
}

// awaitStub gives the stub time to end. One whose runtime went away, or hangs,
// between registration and configuration waits for ever.
func (c *connection) awaitStub(done <-chan error) error {
	timer := time.NewTimer(abandonStub)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return errors.New("the runtime closed the connection during registration")
	}
}

func (c *connection) configured(runtime, version string, process processOfNode, requestTimeout time.Duration) {
	c.mu.Lock()
	c.connected, c.name, c.version = true, runtime, version
	c.mu.Unlock()
	c.pacer.gate.setRuntime(runtime, version, process)
	c.pacer.requestTimeout.Store(int64(requestTimeout))
	log := c.log.WithFields(logrus.Fields{"runtime": runtime, "runtime_version": version})
	if why := c.pacer.gate.off(); why != "" {
		log = log.WithField("no_gate", why)
	}
	log.Info("registered with the runtime")
}

func (c *connection) becameSynchronized() {
	c.mu.Lock()
	c.synchronized, c.lastError = true, nil
	c.mu.Unlock()
	c.first.Do(func() { close(c.firstSync) })
	c.pacer.metrics.connected.Set(1)
	c.log.Info("synchronized with the runtime: pods are paced")
}

func (c *connection) lost(err error) {
	c.mu.Lock()
	c.connected, c.synchronized, c.lastError = false, false, err
	c.mu.Unlock()
	c.pacer.metrics.connected.Set(0)
}

// state tells how far the connection is; err is nil while pods are paced.
func (c *connection) state() (connected, synchronized bool, name, version string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err = c.lastError
	if err == nil && !c.synchronized {
		err = errNotConnected
	}
	return c.connected, c.synchronized, c.name, c.version, err
}

// watchedConn tells when a connection is gone, whoever notices first.
type watchedConn struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
}

func (c *watchedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		c.gone()
	}
	return n, err
}

func (c *watchedConn) Close() error {
	c.gone()
	return c.Conn.Close()
}

func (c *watchedConn) gone() { c.once.Do(func() { close(c.closed) }) }

// stubLog passes on what the NRI stub logs, one level lower: its news are ours
// already.
type stubLog struct{ log logrus.FieldLogger }

func (l stubLog) Debugf(_ context.Context, format string, args ...any) { l.log.Debugf(format, args...) }
func (l stubLog) Infof(_ context.Context, format string, args ...any)  { l.log.Debugf(format, args...) }
func (l stubLog) Warnf(_ context.Context, format string, args ...any)  { l.log.Warnf(format, args...) }
func (l stubLog) Errorf(_ context.Context, format string, args ...any) { l.log.Errorf(format, args...) }
