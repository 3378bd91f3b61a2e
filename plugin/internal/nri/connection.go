package nri

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
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
	// knockEvery is about the time between two attempts while no runtime listens: to try
	// costs nothing, and pods that a runtime makes before the daemon is back are unpaced.
	knockEvery = 100 * time.Millisecond
	// registrationLimit is how long the runtime may take from the connection to the
	// plugin's configuration; NRI's own limit is 5 s.
	registrationLimit = 15 * time.Second
	// abandonStub is how long the stub may take to notice that its connection is
	// gone.
	abandonStub = time.Second
	// remindEvery is the time between two warnings of the same.
	remindEvery = 5 * time.Minute
)

var (
	errNotConnected = errors.New("not connected to the runtime yet")
	errNotSynced    = errors.New("the runtime has not told yet which pods it runs")
	errClosed       = errors.New("the runtime closed the connection")
	errUnregistered = errors.New("the runtime closed the connection during registration")
	errSilent       = fmt.Errorf("the runtime did not configure the plugin within %s", registrationLimit)
	errTooLate      = errors.New("two answers to the runtime took longer than its request timeout, which holds up all pods")
	errStubFailed   = errors.New("the NRI stub panicked")
	errWeak         = errors.New("the connection ended soon after it was registered, or after an answer that took longer than the runtime's request timeout, which holds up all pods")
)

// Options say which runtime to connect to, and what answers it.
type Options struct {
	// PreRegistered is the connection of a daemon that the runtime has started; nil: connect to Socket,
	// under Name and Index, which orders the plugins of a runtime.
	PreRegistered       *PreRegistered
	Socket, Name, Index string
	Handler             Handler
	// Limits is closed once the handler knows its limits. A pre-registered daemon waits for that before
	// it lets the runtime serve a pod.
	Limits <-chan struct{}
	// Stops knows which pods of the node are being stopped; nil: that is not known.
	Stops StopSource
	Log   logrus.FieldLogger
	// FirstPause is the first pause after a registration that came to nothing; 0: 5 s.
	FirstPause time.Duration
}

// State is how far a connection is.
type State struct {
	Connected, Synchronized bool
	Runtime, Version        string // as the runtime calls itself; empty: it has not said so yet
	Err                     error  // why the runtime does not ask the handler; nil: it does
}

// Connection keeps the daemon registered with the runtime. Make it with New; its methods are safe
// for concurrent use.
type Connection struct {
	options Options
	handler Handler
	log     logrus.FieldLogger

	first    sync.Once
	synced   chan struct{} // closed once the runtime has told what it runs
	stops    stopWait
	weakness weakness
	timeout  atomic.Int64 // after which the runtime gives an answer up, in nanoseconds; 0: not known yet

	mu            sync.Mutex
	number        int // of the connection; what an earlier one still says does not count
	connected     bool
	since         time.Time // when the connection was registered
	synchronized  bool
	name, version string
	lastError     error
	warned        time.Time // of lastError
	lost          bool      // it was in use once, and the node's events say that it is not
}

// New returns a connection that connects to nothing yet.
func New(o Options) *Connection {
	return &Connection{
		options: o, handler: o.Handler, log: o.Log, lastError: errNotConnected,
		synced: make(chan struct{}), stops: stopWait{source: o.Stops}, weakness: weakness{first: o.FirstPause},
	}
}

// Synced returns a channel that is closed once the runtime has listed for the first time what it runs.
func (c *Connection) Synced() <-chan struct{} { return c.synced }

// Run connects, serves and connects again until ctx ends. It never gives up; but a
// connection that the runtime made, only the runtime makes anew.
func (c *Connection) Run(ctx context.Context) error {
	if l := c.options.PreRegistered; l != nil {
		return c.servePreRegistered(ctx, l)
	}
	wait := retryFirst
	c.stops.begin(time.Now())
	for {
		c.awaitStops(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // The daemon ends, and that is no fault.
		}
		served, err := c.serve(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // The end of ctx is why serve failed, and no fault.
		}
		if served.synchronized {
			wait = retryFirst
			c.lose(err)
		}
		// Jitter: a hundred daemons of a machine park do not come in step.
		pause := wait/2 + rand.N(wait)
		switch weak := c.weakness.after(served); {
		case nobodyListens(err):
			pause = knockEvery/2 + rand.N(knockEvery)
		case weak > 0:
			pause = weak + rand.N(weak/2)
			err = fmt.Errorf("%w: %w", errWeak, err)
		default:
			wait = min(2*wait, retryMost)
		}
		c.warn(time.Now(), err, pause)
		c.rest(ctx, pause, served.socket)
	}
}

// nobodyListens reports whether there is no runtime at the socket.
func nobodyListens(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT)
}

// warn takes note of why there is no connection, and says so: when that is new, and from time to time.
func (c *Connection) warn(now time.Time, err error, pause time.Duration) {
	c.mu.Lock()
	again := c.lastError != nil && c.lastError.Error() == err.Error() && now.Sub(c.warned) < remindEvery
	c.lastError = err
	if !again {
		c.warned = now
	}
	c.mu.Unlock()
	log := c.log.WithError(err).WithField("retry_in", pause.Round(time.Millisecond))
	switch {
	case !again:
		log.Warn("no connection to the runtime: pods start unpaced")
	case !nobodyListens(err): // that would be ten times a second
		log.Debug("still no connection to the runtime: pods start unpaced")
	}
}

// serve lives as long as one connection, and gives how far that came.
func (c *Connection) serve(ctx context.Context) (served life, err error) {
	var dialer net.Dialer
	socket := socketOf(c.options.Socket)
	raw, err := dialer.DialContext(ctx, "unix", c.options.Socket)
	if err != nil {
		return life{}, fmt.Errorf("NRI socket: %w (does containerd run, with NRI enabled?)", err)
	}
	conn := &watchedConn{Conn: raw, closed: make(chan struct{})}
	defer conn.Close()
	number := c.begin()
	late := newLateAnswers(func() time.Duration { return time.Duration(c.timeout.Load()) })
	h := &plugin{handler: c.handler, synchronized: func() { c.becameSynchronized(number) }, late: late}
	st, err := newStub(h, c.options.Name, c.options.Index, conn, c.intercept, c.log)
	if err != nil {
		return life{}, err
	}
	h.configured = func(runtime, version string) error {
		return c.configured(number, runtime, version, st.RequestTimeout())
	}
	done := make(chan error, 1)
	go func() { done <- c.runStub(ctx, st) }()
	err = c.watch(ctx, number, conn, late, done)
	now := time.Now()
	served = c.end(now)
	served.socket, served.late = socket, late.late(now)
	conn.Close()
	if err == nil {
		err = awaitStub(st, done)
	} else if ended := awaitStub(st, done); ended != nil {
		c.log.WithError(ended).Debug("the connection to the runtime has ended")
	}
	return served, err
}

// newStub returns a stub that serves a connection. Its failure policy keeps the plugin registered where
// one request took too long: each new registration may hold up the node, see stopWait. A runtime whose NRI
// knows no such policy passes over it.
func newStub(p any, name, index string, conn *watchedConn, intercept ttrpc.UnaryServerInterceptor, log logrus.FieldLogger) (stub.Stub, error) {
	st, err := stub.New(p,
		stub.WithPluginName(name), stub.WithPluginIdx(index),
		stub.WithConnection(conn), stub.WithOnClose(func() { conn.Close() }), stub.WithFailurePolicy(&api.FailurePolicy{KeepConnected: true}),
		stub.WithTTRPCOptions(nil, []ttrpc.ServerOpt{ttrpc.WithUnaryServerInterceptor(intercept)}),
		stub.WithLogger(stubLog{log}))
	if err != nil {
		return nil, fmt.Errorf("NRI stub: %w", err)
	}
	return st, nil
}

// runStub serves the runtime; a stub can be used once.
func (c *Connection) runStub(ctx context.Context, st stub.Stub) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			c.handler.Panicked("stub", fault, nil)
			err = errStubFailed
		}
	}()
	return st.Run(ctx)
}

// watch returns when the connection has to end: with the reason, or nil where the
// stub knows it. It never ends one by its own decision while a container of the node is being stopped: the
// daemon would be away until that is over, see stopWait. A runtime that does not know the failure policy ends it
// at the first answer that is too late; another waits for its timeout at each late answer until then.
func (c *Connection) watch(ctx context.Context, number int, conn *watchedConn, late *lateAnswers, done chan error) error {
	registration, still := time.After(registrationLimit), time.Tick(stillEvery)
	before := time.Now()
	stoodStill := func() {
		now := time.Now()
		late.took(now, now.Sub(before)-stillEvery)
		before = now
	}
	defer stoodStill() // who is given up while it stands still may learn of that first
	for {
		select {
		case err := <-done:
			done <- err // for awaitStub
			return nil
		case <-conn.closed:
			return nil
		case <-ctx.Done():
			return nil
		case <-still:
			stoodStill()
		case <-late.again:
			// The next late answer after the stop asks again.
			if !c.stops.stopping(time.Now()) {
				return errTooLate
			}
		case <-registration:
			switch {
			case c.isConfigured(number):
			case c.stops.stopping(time.Now()):
				registration = time.After(registrationLimit)
			default:
				return errSilent
			}
		}
	}
}

// awaitStub returns why the stub ended; its connection is closed. One that waits for
// its configuration does not notice, and gets one that fails.
func awaitStub(st stub.Stub, done <-chan error) error {
	select {
	case err := <-done:
		if err == nil {
			return errClosed
		}
		return err
	case <-time.After(abandonStub):
	}
	if waits, ok := st.(interface {
		Configure(context.Context, *api.ConfigureRequest) (*api.ConfigureResponse, error)
	}); ok {
		_, _ = waits.Configure(context.Background(), &api.ConfigureRequest{}) // fails, which is its purpose
	}
	return errUnregistered
}

// intercept is around every call of the runtime: a panic outside of the handlers,
// which catch their own, does not end the daemon either, and the runtime goes on.
func (c *Connection) intercept(ctx context.Context, decode ttrpc.Unmarshaler, call *ttrpc.UnaryServerInfo, method ttrpc.Method) (reply any, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			c.handler.Panicked(call.FullMethod, fault, nil)
			// No field set is the same message for every type: "go on, as it is".
			reply, err = &api.Empty{}, nil
		}
	}()
	return method(ctx, decode)
}
