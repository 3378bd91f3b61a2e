package nri

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/containerd/nri/pkg/api"
	nrinet "github.com/containerd/nri/pkg/net"
	"github.com/containerd/nri/pkg/stub"
	"github.com/containerd/ttrpc"
	"github.com/sirupsen/logrus"
)

const (
	// answerShare is the share of NRI's request timeout after which the daemon answers the configuration, even if it
	// cannot pace pods yet. After all of the timeout, the runtime would drop the plugin without a reason.
	answerShare = 0.75
	// limitsShare is the share of the request timeout for which the daemon waits for its limits. With them in force
	// before the runtime serves a pod, the very first pod is paced.
	limitsShare = 0.35
)

var (
	errPreRegisteredLate = errors.New("the daemon could not pace pods")
	errPreRegisteredOver = errors.New("the runtime that started this daemon closed the connection")
)

// PreRegistered is the connection of a daemon that the runtime has started, as a pre-registered plugin. The daemon ends
// with the connection; the next runtime starts another daemon. Create it with TakePreRegistered. It is safe for
// concurrent use.
type PreRegistered struct {
	conn *watchedConn
	stub stub.Stub

	config  chan string           // what Configure was called with
	refused chan error            // the answer to Configure
	delayed atomic.Pointer[error] // what the daemon waits for; nil: nothing
	answer  atomic.Pointer[error] // why the configuration was refused; nil: it was not

	// The stub must have its plugin before the runtime sends the text that configures the daemon. So assign sets plugin
	// and serve when there is a daemon, and then closes assigned.
	assigned chan struct{}
	plugin   plugin
	serve    ttrpc.UnaryServerInterceptor
}

// TakePreRegistered returns the connection to the runtime that has started this process; nil if none has. env returns
// an environment variable. Those of NRI are unset afterwards. TakePreRegistered starts nothing.
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
		_ = os.Unsetenv(used) // the stub reads them, too; it fails only for a name that is not valid
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
		config: make(chan string, 1), refused: make(chan error, 1), assigned: make(chan struct{}),
	}
	var err error
	if l.stub, err = newStub(&preRegisteredPlugin{plugin: &l.plugin, l: l}, name, index, l.conn, l.intercept, log); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return l, nil
}

// Run serves the runtime until the runtime closes the connection, and returns why; or until ctx ends, and returns nil.
// It must be called once.
func (l *PreRegistered) Run(ctx context.Context) error {
	defer l.conn.Close()
	done := make(chan error, 1)
	go func() {
		defer l.conn.Close()
		done <- l.stub.Run(ctx)
	}()
	<-l.conn.closed
	err := awaitStub(l.stub, done)
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, errClosed) || errors.Is(err, ttrpc.ErrServerClosed):
		return errPreRegisteredOver
	default:
		return fmt.Errorf("%w: %w", errPreRegisteredOver, err)
	}
}

// Config blocks until the runtime configures the plugin, and returns the text of the configuration. It returns an error
// if ctx ends or the runtime closes the connection. Call it once, while Run runs. The runtime then waits for the daemon
// that uses this connection to pace pods, or for Refuse.
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

// Refuse answers the runtime with the reason why no daemon paces pods, if it still waits for an answer.
func (l *PreRegistered) Refuse(why error) {
	select {
	case l.refused <- why:
	default: // it was refused before
	}
}

// Delayed sets what the daemon waits for. The runtime gets this as the answer if the daemon waits for too long.
func (l *PreRegistered) Delayed(why error) { l.delayed.Store(&why) }

// shareOf returns a share of the runtime's request timeout, which is known once Config has returned. An old runtime
// does not report it.
func (l *PreRegistered) shareOf(share float64) time.Duration {
	timeout := l.stub.RequestTimeout()
	if timeout <= 0 {
		timeout = stub.DefaultRequestTimeout
	}
	return time.Duration(share * float64(timeout))
}

// assign makes a daemon's Connection serve the runtime. Only the first call has an effect. Calls must not overlap.
func (l *PreRegistered) assign(owner *Connection) {
	select {
	case <-l.assigned:
		return
	default:
	}
	l.plugin = plugin{Handler: owner.handler, connection: owner, number: owner.begin(), stub: l.stub}
	l.serve = owner.intercept(newLateAnswers(owner.requestTimeout))
	close(l.assigned)
}

// intercept runs around every call of the runtime. It answers a configuration that was refused, because the stub would
// close the connection before the runtime has the reason.
func (l *PreRegistered) intercept(ctx context.Context, decode ttrpc.Unmarshaler, call *ttrpc.UnaryServerInfo, method ttrpc.Method) (any, error) {
	select {
	case <-l.assigned:
		return l.serve(ctx, decode, call, method)
	default:
	}
	reply, err := method(ctx, decode)
	if why := l.answer.Load(); why != nil {
		return nil, *why
	}
	return reply, err
}

// preRegisteredPlugin is the plugin of a daemon that does not exist yet.
type preRegisteredPlugin struct {
	*plugin
	l *PreRegistered
}

// Configure sends the text to Config, and blocks until a daemon paces pods or the time is over.
func (p *preRegisteredPlugin) Configure(ctx context.Context, config, runtime, version string) (api.EventMask, error) {
	most := p.l.shareOf(answerShare)
	late := time.After(most)
	p.l.config <- config
	var why error
	select {
	case <-p.l.assigned:
		return p.plugin.Configure(ctx, config, runtime, version)
	case why = <-p.l.refused:
	case <-late:
		why = fmt.Errorf("%w within %s", errPreRegisteredLate, most)
		if delayed := p.l.delayed.Load(); delayed != nil {
			why = fmt.Errorf("%w: %w", why, *delayed)
		}
	}
	p.l.answer.Store(&why)
	return 0, nil
}

// servePreRegistered serves the runtime that started this process, until it closes the connection or ctx ends.
func (c *Connection) servePreRegistered(ctx context.Context, l *PreRegistered) error {
	select {
	case <-c.options.Limits:
	case <-time.After(l.shareOf(limitsShare)):
	case <-ctx.Done():
		return nil
	}
	l.assign(c)
	select {
	case <-l.conn.closed:
	case <-ctx.Done():
	}
	c.end(time.Now())
	if ctx.Err() != nil {
		return nil
	}
	c.log.WithError(errPreRegisteredOver).Error("no connection to the runtime: pods start unpaced until another daemon paces them")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastError = errPreRegisteredOver
	return errPreRegisteredOver
}
