package gate

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
)

// conn is the connection of one hook.
type conn struct {
	*net.UnixConn
	server *Server
	log    logrus.FieldLogger
}

// serve answers one hook.
func (s *Server) serve(ctx context.Context, accepted *net.UnixConn) {
	c := &conn{UnixConn: accepted, server: s, log: s.log}
	defer c.abandon()
	// To end the reading, for good, is how this connection learns that ctx ended;
	// a verdict can still be written.
	stop := context.AfterFunc(ctx, c.endRead)
	defer stop()

	hello, err := c.readHello()
	switch {
	case err == nil:
		c.log = c.log.WithFields(fields(hello))
		c.decide(ctx, hello)
	case errors.Is(err, wire.ErrVersion):
		c.keepWaiting(ctx, err)
	case errors.Is(err, wire.ErrMalformed):
		c.letGo(err)
	case ctx.Err() == nil:
		c.log.WithError(err).Warn("a hook said nothing at the gate")
	}
}

// fields are what log lines tell of a hook: by the names that the other packages
// use, so that one search finds all of a pod.
func fields(h Hello) logrus.Fields {
	namespace, name, ok := strings.Cut(h.Name, "/")
	if !ok {
		namespace, name = "", h.Name
	}
	return logrus.Fields{"pod_namespace": namespace, "pod_name": name, "pod_uid": h.PodUID, "container_id": h.ContainerID}
}

// endRead makes reads return at once, now and later.
func (c *conn) endRead() { _ = c.CloseRead() } // fails only where the reads already do

// abandon makes every read and write fail. To close it once more is harmless.
func (c *conn) abandon() { _ = c.Close() }

// keepWaiting leaves a hook to the daemon of its own version, or to the time that
// one told it: an upgrade finds the gate full of such hooks, which must not start
// all at once. It asks again at intervals.
func (c *conn) keepWaiting(ctx context.Context, why error) {
	c.server.otherVersion.Do(func() {
		c.log.WithError(why).Warn("hooks of another version wait at the gate: each lets its container start at the time that it was told last")
	})
	sleep(ctx, c.server.pause)
}

func (c *conn) letGo(why error) {
	c.log.WithError(why).WithField("reason", NotUnderstood).Warn("a container starts unpaced: the gate does not understand its hook")
	if err := c.write(wire.Answer{Kind: wire.Go, Reason: string(NotUnderstood)}); err != nil {
		c.log.WithError(err).Warn("a hook did not take its verdict")
	}
}

func (c *conn) readHello() (Hello, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.server.helloTimeout)); err != nil {
		return Hello{}, err
	}
	r := bufio.NewReaderSize(c, wire.MaxLine)
	line, err := r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return Hello{}, fmt.Errorf("%w: the first %d bytes have no end of line", wire.ErrMalformed, wire.MaxLine)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return Hello{}, fmt.Errorf("no whole line in %s: %w", c.server.helloTimeout, err)
	case err != nil:
		return Hello{}, err
	case r.Buffered() > 0:
		return Hello{}, fmt.Errorf("%w: more than a hello", wire.ErrMalformed)
	}
	hello, err := wire.ParseHello(strings.TrimSuffix(string(line), "\n"))
	if err != nil {
		return Hello{}, err
	}
	if now := time.Now(); !hello.Deadline.IsZero() {
		hello.Deadline = now.Add(hello.Deadline.Sub(now))
	}
	return hello, c.SetReadDeadline(time.Time{})
}

// write sends one answer, and gives up on a hook that does not read.
func (c *conn) write(a wire.Answer) error {
	if err := c.SetWriteDeadline(time.Now().Add(c.server.writeTimeout)); err != nil {
		return err
	}
	_, err := c.Write(wire.AppendAnswer(nil, a))
	return err
}

// watch returns when the hook is gone, says more than it may, or reading was ended.
func (c *conn) watch() error {
	n, err := c.Read(make([]byte, 1))
	switch {
	case n > 0:
		return errors.New("the hook said more than its hello")
	case errors.Is(err, io.EOF):
		return errors.New("the hook went away")
	}
	return err
}

// ask calls the backend, and turns its panic into an error.
func (c *conn) ask(ctx context.Context, h Hello, p *pace) (v Verdict, err error) {
	defer p.end()
	if panicked := c.server.caught(func() { v, err = c.server.backend.Wait(ctx, h, p.set) }); panicked != nil {
		return Verdict{}, panicked
	}
	return v, err
}
