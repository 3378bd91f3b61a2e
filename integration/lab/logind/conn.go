package logind

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"sync"
	"syscall"

	"github.com/godbus/dbus/v5"
)

// serialAt is the position of a message's number in the message. The library leaves numbering to
// its own connections.
const serialAt = 8

// conn is the bus's end of one connection.
type conn struct {
	bus    *Logind
	socket *net.UnixConn
	name   string

	mu     sync.Mutex
	serial uint32 // number of the last written message
	rules  []rule
}

// serve serves one client until it disconnects, breaks the protocol, or ctx ends.
func (l *Logind) serve(ctx context.Context, socket *net.UnixConn) {
	// A closed socket ends the read below when the bus ends.
	stop := context.AfterFunc(ctx, func() { _ = socket.Close() })
	defer func() {
		if stop() {
			_ = socket.Close()
		}
	}()
	in := bufio.NewReader(socket)
	if authenticate(in, socket) != nil {
		return
	}
	c := &conn{bus: l, socket: socket}
	l.join(c)
	defer l.leave(c)
	for {
		call, err := dbus.DecodeMessage(in)
		if err != nil || c.answer(ctx, call) != nil {
			return
		}
	}
}

// reply sends the result of a call to the caller.
func (c *conn) reply(call *dbus.Message, sender string, body ...any) error {
	return c.send(&dbus.Message{Type: dbus.TypeMethodReply, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldReplySerial: dbus.MakeVariant(call.Serial()),
		dbus.FieldSender:      dbus.MakeVariant(sender),
	}, Body: body})
}

// fail sends an error as the result of a call.
func (c *conn) fail(call *dbus.Message, name, text string) error {
	return c.send(&dbus.Message{Type: dbus.TypeError, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldReplySerial: dbus.MakeVariant(call.Serial()),
		dbus.FieldSender:      dbus.MakeVariant(busName),
		dbus.FieldErrorName:   dbus.MakeVariant(name),
	}, Body: []any{text}})
}

// signal sends the signal of a shutdown, if the client has asked for it.
func (c *conn) signal() (sent bool, err error) {
	if !c.wantsShutdown() {
		return false, nil
	}
	return true, c.send(&dbus.Message{Type: dbus.TypeSignal, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldSender:    dbus.MakeVariant(logindName),
		dbus.FieldPath:      dbus.MakeVariant(dbus.ObjectPath(logindPath)),
		dbus.FieldInterface: dbus.MakeVariant(logindInterface),
		dbus.FieldMember:    dbus.MakeVariant("PrepareForShutdown"),
	}, Body: []any{true}})
}

func (c *conn) wantsShutdown() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.rules {
		if r.wantsShutdown() {
			return true
		}
	}
	return false
}

// send writes a message to the client, with the file descriptors in its body.
func (c *conn) send(m *dbus.Message) error {
	m.Headers[dbus.FieldDestination] = dbus.MakeVariant(c.name)
	if len(m.Body) > 0 {
		m.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(m.Body...))
	}
	if n, err := m.CountFds(); err != nil {
		return err
	} else if n > 0 {
		m.Headers[dbus.FieldUnixFDs] = dbus.MakeVariant(uint32(n))
	}
	var out bytes.Buffer
	fds, err := m.EncodeToWithFDs(&out, binary.LittleEndian)
	if err != nil {
		return err
	}
	var rights []byte
	if len(fds) > 0 {
		rights = syscall.UnixRights(fds...)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serial++
	binary.LittleEndian.PutUint32(out.Bytes()[serialAt:], c.serial)
	_, _, err = c.socket.WriteMsgUnix(out.Bytes(), rights, nil)
	return err
}
