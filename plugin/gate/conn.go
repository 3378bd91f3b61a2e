package gate

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
)

// conn is the connection of one hook.
type conn struct {
	Conn
	server *Server
	log    logrus.FieldLogger
	name   string // what log messages call the hook
}

// serve answers one hook.
func (c *conn) serve(ctx context.Context) {
	defer c.abandon()
	// The end of ctx ends all reads for good. A verdict can still be written.
	stop := context.AfterFunc(ctx, c.endRead)
	defer stop()

	hello, err := c.readHello()
	switch {
	case err == nil:
		c.log, c.name = c.log.WithFields(fields(hello)), who(hello)
		c.decide(ctx, hello)
	case errors.Is(err, wire.ErrMalformed):
		c.letGo(err)
	case ctx.Err() == nil:
		c.log.WithError(err).Warn("a hook connected to the gate, and did not say for which container it waits")
	}
}

// fields returns the log fields of a hook. They have the names that the other packages
// use, so that one search finds all log lines of a pod.
func fields(h Hello) logrus.Fields {
	slash := strings.IndexByte(h.Name, '/')
	id := "container_id"
	if h.Room {
		id = "sandbox_id"
	}
	return logrus.Fields{
		"pod_namespace": h.Name[:max(slash, 0)], "pod_name": h.Name[slash+1:], "pod_uid": h.PodUID, id: h.ContainerID,
	}
}

// who names a process that waits, for the log.
func who(h Hello) string {
	pod := cmp.Or(h.Name, h.PodUID) // a name that is too long is not sent
	if h.Room {
		return "the process in the waiting room of pod " + pod
	}
	return "the hook of pod " + pod
}

// endRead makes reads return at once, now and later.
func (c *conn) endRead() { _ = c.CloseRead() } // if it fails, reads fail already

// abandon makes every read and write fail. It may be called more than once.
func (c *conn) abandon() { _ = c.Close() }

func (c *conn) letGo(why error) {
	c.log.WithError(why).WithField("reason", NotUnderstood).Warn("a container starts unpaced: the gate does not understand its hook")
	if err := c.write(wire.Answer{Kind: wire.Go, Reason: string(NotUnderstood)}); err != nil {
		c.log.WithError(err).Warn("a hook that the gate does not understand went away before its answer")
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

// write sends one answer. It fails if the hook does not read it in time.
func (c *conn) write(a wire.Answer) error {
	if err := c.SetWriteDeadline(time.Now().Add(c.server.writeTimeout)); err != nil {
		return err
	}
	_, err := c.Write(wire.AppendAnswer(nil, a))
	return err
}

// watch blocks until the hook is gone, sends more than its hello, or reading was ended. It returns which.
func (c *conn) watch() error {
	n, err := c.Read(make([]byte, 1))
	switch {
	case n > 0:
		return errors.New("the hook sent more than its hello")
	case errors.Is(err, io.EOF):
		return errors.New("the hook went away")
	}
	return err
}
