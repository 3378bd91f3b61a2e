package nri

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containerd/nri/pkg/api"
	nrinet "github.com/containerd/nri/pkg/net"
	"github.com/containerd/nri/pkg/stub"
	"github.com/containerd/ttrpc"
	"github.com/sirupsen/logrus"
)

const (
	// answerShare is the share of NRI's request timeout for which the runtime is kept
	// waiting for a daemon that is about to pace; after all of it, the runtime would give
	// the plugin up without a word.
	answerShare = 0.75
	// limitsShare is the share of it for which the daemon waits for its limits: with them
	// in force before the runtime serves a pod, the first pod of all is paced.
	limitsShare = 0.35
)

var (
	errPreRegisteredLate = errors.New("the daemon could not pace pods")
	errPreRegisteredOver = errors.New("the runtime that started this daemon closed the connection")
)

// PreRegistered is the connection to the runtime of a daemon that the runtime itself has
// started, as a pre-registered plugin. The daemon ends with it: the runtime that
// comes next starts another. Make it with TakePreRegistered; safe for concurrent use.
type PreRegistered struct {
	conn *watchedConn
	stub stub.Stub
	h    plugin

	config  chan string
	refused chan error
	delayed atomic.Pointer[error] // what the daemon waits for; nil: nothing
	answer  atomic.Pointer[error] // why the configuration was refused; nil: it was not
	adopted chan struct{}         // closed when h and owner are set
	owner   *Connection
	once    sync.Once
}

// TakePreRegistered takes over the connection that the runtime gave the process that it started. env returns
// environment variables; those of NRI are unset afterwards. It returns nil where the runtime has not started
// this process. It starts nothing.
func TakePreRegistered(env func(string) string, log logrus.FieldLogger) (*PreRegistered, error) {
	if env(api.PluginSocketEnvVar) == "" {
		return nil, nil
	}
	fd, err := strconv.Atoi(env(api.PluginSocketEnvVar))
	if err != nil || fd < 3 {
		return nil, fmt.Errorf("env %s: %q: must be the number of the open file that leads to the runtime", api.PluginSocketEnvVar, env(api.PluginSocketEnvVar))
	}
	name, index := env(api.PluginNameEnvVar), env(api.PluginIdxEnvVar)
	for _, used := range []string{api.PluginSocketEnvVar, api.PluginNameEnvVar, api.PluginIdxEnvVar} {
		if err := os.Unsetenv(used); err != nil { // the stub reads them, too
			return nil, fmt.Errorf("env %s: %w", used, err)
		}
	}
	conn, err := nrinet.NewFdConn(fd)
	if err != nil {
		return nil, fmt.Errorf("env %s: %w", api.PluginSocketEnvVar, err)
	}
	return newPreRegistered(conn, name, index, log)
}

func newPreRegistered(raw net.Conn, name, index string, log logrus.FieldLogger) (*PreRegistered, error) {
	l := &PreRegistered{
		conn:   &watchedConn{Conn: raw, closed: make(chan struct{})},
		config: make(chan string, 1), refused: make(chan error, 1), adopted: make(chan struct{}),
	}
	var err error
	if l.stub, err = newStub(&preRegisteredPlugin{plugin: &l.h, l: l}, name, index, l.conn, l.intercept, log); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return l, nil
}

// Run serves the runtime until it closes the connection, or ctx ends. It returns why
// it ended; nil: ctx did. To be called once.
func (l *PreRegistered) Run(ctx context.Context) error {
	defer l.conn.Close()
	done := make(chan error, 1)
	go func() { done <- l.stub.Run(ctx) }()
	select {
	case err := <-done:
		if ctx.Err() != nil {
			return nil
		}
		if err == nil || errors.Is(err, ttrpc.ErrServerClosed) {
			return errPreRegisteredOver
		}
		return fmt.Errorf("%w: %w", errPreRegisteredOver, err)
	case <-l.conn.closed:
		// A stub that waits for its configuration does not notice.
		late := awaitStub(l.stub, done)
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("%w: %w", errPreRegisteredOver, late)
	}
}

// Config returns the text with which the runtime configures the plugin; it blocks until
// that has come or ctx ends. The runtime waits then, until the daemon that is run with
// this connection paces, or Refuse says that none does.
func (l *PreRegistered) Config(ctx context.Context) (string, error) {
	select {
	case text := <-l.config:
		return text, nil
	case <-l.conn.closed:
		return "", errPreRegisteredOver
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// Refuse answers the runtime, if that still waits, why no daemon paces.
func (l *PreRegistered) Refuse(why error) {
	select {
	case l.refused <- why:
	default: // it was told
	}
}

// Delayed notes what the daemon waits for: the answer to the runtime if that does not end in time.
func (l *PreRegistered) Delayed(why error) { l.delayed.Store(&why) }

// shareOf returns a share of the runtime's request timeout, which is known once Config
// has returned. An old runtime does not tell it.
func (l *PreRegistered) shareOf(share float64) time.Duration {
	timeout := l.stub.RequestTimeout()
	if timeout <= 0 {
		timeout = stub.DefaultRequestTimeout
	}
	return time.Duration(share * float64(timeout))
}

// adopt has the connection served by a daemon.
func (l *PreRegistered) adopt(owner *Connection, configured func(runtime, version string) error, synchronized func()) {
	l.once.Do(func() {
		l.owner = owner
		l.h.handler, l.h.configured, l.h.synchronized = owner.handler, configured, synchronized
		close(l.adopted)
	})
}

// intercept is around every call of the runtime. It answers the configuration that was
// refused: the stub would close the connection before the runtime knows why.
func (l *PreRegistered) intercept(ctx context.Context, decode ttrpc.Unmarshaler, call *ttrpc.UnaryServerInfo, method ttrpc.Method) (any, error) {
	select {
	case <-l.adopted:
		return l.owner.intercept(ctx, decode, call, method)
	default:
	}
	reply, err := method(ctx, decode)
	if why := l.answer.Load(); why != nil {
		return nil, *why
	}
	return reply, err
}
