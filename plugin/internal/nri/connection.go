package nri

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"
	"github.com/containerd/ttrpc"
	"github.com/sirupsen/logrus"
)

const (
	// retryFirst is the first time between two attempts to connect. It doubles up to retryMost.
	retryFirst = 200 * time.Millisecond
	retryMost  = 5 * time.Second
	// knockEvery is about the time between two attempts while no runtime listens. An attempt costs nothing then, and
	// pods that a runtime starts before the daemon is back are unpaced.
	knockEvery = 100 * time.Millisecond
	// registrationLimit is how long the runtime may take from the connection to the plugin's configuration. NRI's own
	// limit is 5 s.
	registrationLimit = 15 * time.Second
	// abandonStub is how long the stub may take to notice that its connection has ended.
	abandonStub = time.Second
	// remindEvery is the time between two warnings that repeat an error.
	remindEvery = 5 * time.Minute
)

var (
	errNotConnected = errors.New("not connected to the runtime yet")
	errNotSynced    = errors.New("the runtime has not listed its pods yet")
	errClosed       = errors.New("the runtime closed the connection")
	errUnregistered = errors.New("the runtime closed the connection during registration")
	errSilent       = fmt.Errorf("the runtime did not configure the plugin within %s", registrationLimit)
	errTooLate      = errors.New("two answers to the runtime took longer than its request timeout, or than 5 s, which holds up all pods")
	errStubFailed   = errors.New("the NRI stub panicked")
	errRuntimeEnded = errors.New("the runtime ended while it registered the daemon, before it had listed its pods")
	errUnlisted     = errors.New("the runtime closed the connection before it had listed its pods, and its log says why")
	errWeak         = errors.New("the connection ended soon after it was registered, or after an answer that took longer than the runtime's request timeout, which holds up all pods")
)

// Options are the runtime to connect to, and what serves it.
type Options struct {
	// The daemon connects to Socket and registers under Name and Index, which orders the plugins of a runtime.
	Socket, Name, Index string
	Handler             Handler
	// Stops knows which pods of the node are being stopped. It is nil if nothing does.
	Stops StopSource
	// Metadata returns how many bytes of labels and annotations the pods of the node have that have more than least, by
	// "namespace/name". It does not block. It is nil if that is not known.
	Metadata func(least int) map[string]int
	// Bundles is the folder of the OCI bundles of the runtime's pods and containers. If it is empty, their sizes are not
	// known.
	Bundles string
	// InContainer reports whether the daemon runs in a container of the runtime, so that Bundles has one at least.
	InContainer bool
	// EndsFile keeps that the runtime ended during a registration. If it is empty, memory keeps that.
	EndsFile string
	// Boot is the kernel's ID of this boot of the node. It is empty if that is not known.
	Boot string
	Log  logrus.FieldLogger
	// FirstPause is the first pause after a connection that was too slow. 0 means 5 s.
	FirstPause time.Duration
	// Dial connects to Socket. If it is nil, it is DialUnix.
	Dial Dial
}

// Dial connects to the runtime's socket at a path. It blocks until it has, or ctx ends.
type Dial func(ctx context.Context, path string) (net.Conn, error)

// DialUnix connects to the unix socket.
func DialUnix(ctx context.Context, path string) (net.Conn, error) {
	var dialer net.Dialer
	return dialer.DialContext(ctx, "unix", path)
}

// Connection keeps the daemon registered with the runtime. Create it with New. Its methods are safe for concurrent use.
type Connection struct {
	options Options
	handler Handler
	log     logrus.FieldLogger

	first  sync.Once
	synced chan struct{} // closed once the runtime has listed what it runs

	// Used by Run alone.
	weakness   weakness
	listing    listing
	ends       ends
	listBy     time.Time // how long it waits for the list of the node's pods
	stopsSince time.Time // when checks began to find a container that is being stopped; zero if the last check found none

	mu            sync.Mutex
	number        int // of the connection; calls of an earlier one have no effect
	connected     bool
	since         time.Time // when the connection was registered
	synchronized  bool
	name, version string
	timeouts      Timeouts
	lastError     error
	warned        time.Time // when lastError was logged
	lost          bool      // it was in use once, and the handler knows that it has ended
	waits         error     // why the daemon must not register yet; nil if it may
}

// New returns a connection that connects to nothing before Run.
func New(o Options) *Connection {
	if o.Dial == nil {
		o.Dial = DialUnix
	}
	return &Connection{
		options: o, handler: o.Handler, log: o.Log, lastError: errNotConnected,
		listing: listing{dir: o.Bundles, inContainer: o.InContainer, metadata: o.Metadata, log: o.Log}, ends: ends{path: o.EndsFile, boot: o.Boot, log: o.Log},
		synced: make(chan struct{}), weakness: weakness{first: o.FirstPause},
	}
}

// Synced returns a channel that is closed once the runtime has listed for the first time what it runs.
func (c *Connection) Synced() <-chan struct{} { return c.synced }

// Run connects, serves the runtime and connects again until ctx ends, and returns nil then.
func (c *Connection) Run(ctx context.Context) error {
	wait := retryFirst
	c.listBy = time.Now().Add(listWithin)
	c.ends.load(time.Now(), func(socket string) bool { return c.gone(ctx, socket) })
	for {
		c.awaitTurn(ctx)
		served, err := c.serve(ctx) // it fails at once if ctx has ended
		ended := c.settle(ctx, served)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the end of ctx is why serve failed, and no fault
		}
		if served.synchronized {
			wait = retryFirst
			c.lose(err)
		}
		// Jitter: daemons that were started together do not connect at the same moments.
		pause := wait/2 + rand.N(wait)
		switch weak := c.weakness.after(served); {
		case ended:
			c.weakness.pause = 0
			err = fmt.Errorf("%w: %w", errRuntimeEnded, err)
		case nobodyListens(err):
			pause = knockEvery/2 + rand.N(knockEvery)
		case weak > 0:
			pause = weak + rand.N(weak/2)
			why := errWeak
			if !served.synchronized && served.late == 0 {
				why = errUnlisted
			}
			err = fmt.Errorf("%w: %w", why, err)
		default:
			wait = min(2*wait, retryMost)
		}
		c.warn(time.Now(), err, pause)
		c.rest(ctx, pause, served.socket)
	}
}

// settle notes how a registration went, and reports whether the runtime ended before it had listed its pods.
func (c *Connection) settle(ctx context.Context, served life) (ended bool) {
	socket := c.ends.note.Registering
	switch {
	case served.synchronized:
		c.ends.listed()
	case socket != "":
		ended = served.registered && served.lasted < endsSoon && ctx.Err() == nil && c.gone(ctx, socket)
		c.ends.over(ended)
	}
	return ended
}

// nobodyListens reports whether err means that no runtime listens at the socket.
func nobodyListens(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT)
}

// warn stores why there is no connection. It logs a new error at once, and the same error every few minutes.
func (c *Connection) warn(now time.Time, err error, pause time.Duration) {
	c.mu.Lock()
	again := c.lastError != nil && c.lastError.Error() == err.Error() && now.Sub(c.warned) < remindEvery
	c.lastError = err
	if !again {
		c.warned = now
	}
	c.mu.Unlock()
	if !again {
		c.log.WithError(err).WithField("retry_in", pause.Round(time.Millisecond)).Warn("no connection to the runtime: pods start unpaced")
	}
}

// serve connects once, serves the runtime until the connection ends, and returns how it went.
func (c *Connection) serve(ctx context.Context) (served life, err error) {
	socket := socketID(c.options.Socket)
	raw, err := c.options.Dial(ctx, c.options.Socket)
	if err != nil {
		return life{}, fmt.Errorf("NRI socket: %w (does containerd run, with NRI enabled?)", err)
	}
	conn := &watchedConn{Conn: raw, closed: make(chan struct{}), listed: make(chan struct{})}
	defer conn.Close()
	c.ends.begin(time.Now(), socket)
	late := newLateAnswers(c.lateAfter)
	p := plugin{Handler: c.handler, connection: c, number: c.begin(), listed: sync.OnceFunc(func() { close(conn.listed) })}
	st, err := newStub(&p, c.options.Name, c.options.Index, conn, c.intercept(late), c.log)
	if err != nil {
		return life{}, err
	}
	p.stub = st
	done := make(chan error, 1)
	go func() {
		defer conn.Close()
		done <- c.runStub(ctx, st)
	}()
	err = c.watch(ctx, conn, late)
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

// newStub returns a stub that serves a connection. It has NRI's default failure policy: the runtime goes on without the
// answer and ends the connection after a request that took too long. With KeepConnected, each request of the node would
// wait for its time-out while the daemon is stopped and cannot leave.
func newStub(p any, name, index string, conn *watchedConn, intercept ttrpc.UnaryServerInterceptor, log logrus.FieldLogger) (stub.Stub, error) {
	st, err := stub.New(p,
		stub.WithPluginName(name), stub.WithPluginIdx(index),
		stub.WithConnection(conn), stub.WithOnClose(func() { conn.Close() }),
		stub.WithTTRPCOptions(nil, []ttrpc.ServerOpt{ttrpc.WithUnaryServerInterceptor(intercept)}),
		stub.WithLogger(stubLog{log}))
	if err != nil {
		return nil, fmt.Errorf("NRI stub: %w", err)
	}
	return st, nil
}

// runStub runs a stub, and turns a panic into an error. A stub can be used once.
func (c *Connection) runStub(ctx context.Context, st stub.Stub) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			c.handler.Panicked("stub", fault, nil)
			err = errStubFailed
		}
	}()
	return st.Run(ctx)
}

// watch blocks until the connection has to end. It returns the reason, or nil if the stub returns it. It does not end a
// connection by its own decision while a container of the node is being stopped, because the daemon could not register
// again before the stop is over, see checkStops. The runtime ends it after an answer later than its time-out.
func (c *Connection) watch(ctx context.Context, conn *watchedConn, late *lateAnswers) error {
	registration, still, listed := time.After(registrationLimit), time.Tick(stillEvery), conn.listed
	before := time.Now()
	// A daemon that did not run for a while may have kept the runtime waiting for as long. It does not leave because of that:
	// the runtime may have stood still, too.
	stoodStill := func() {
		now := time.Now()
		late.counts(now, now.Sub(before)-stillEvery)
		before = now
	}
	defer stoodStill() // the end of the connection may be noticed before the tick
	for {
		select {
		case <-conn.closed:
			return nil
		case <-ctx.Done():
			return nil
		case <-still:
			late.look(time.Now())
			stoodStill()
		case <-listed:
			c.ends.listed()
			listed = nil
		case <-late.again:
			// After the stop, the next late answer sends again.
			if _, _, stops := c.stopUnderWay(time.Now()); !stops {
				return errTooLate
			}
		case <-registration:
			_, _, stops := c.stopUnderWay(time.Now())
			switch {
			case c.State().Connected:
			case stops:
				registration = time.After(registrationLimit)
			default:
				return errSilent
			}
		}
	}
}

// awaitStub returns why the stub of a closed connection ended. A stub that waits for its configuration does not notice
// that the connection is closed, and gets a configuration that fails.
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
		_, _ = waits.Configure(context.Background(), &api.ConfigureRequest{}) // fails on purpose
	}
	return errUnregistered
}
