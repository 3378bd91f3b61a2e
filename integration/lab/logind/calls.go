package logind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/godbus/dbus/v5"
)

// Names in the protocol.
const (
	busName         = "org.freedesktop.DBus"
	logindName      = "org.freedesktop.login1"
	logindPath      = "/org/freedesktop/login1"
	logindInterface = "org.freedesktop.login1.Manager"
)

// answer handles a message. An error is one of the connection.
func (c *conn) answer(ctx context.Context, call *dbus.Message) error {
	if call.Type != dbus.TypeMethodCall {
		return nil // a message that needs no answer
	}
	switch method := header(call, dbus.FieldInterface) + "." + header(call, dbus.FieldMember); method {
	case busName + ".Hello":
		return c.reply(call, busName, c.name)
	case busName + ".AddMatch":
		return c.addMatch(call)
	case "org.freedesktop.DBus.Properties.Get":
		return c.property(call)
	case logindInterface + ".Inhibit":
		return c.inhibit(ctx, call)
	default:
		return c.fail(call, "org.freedesktop.DBus.Error.UnknownMethod", method+" is not in this stand-in")
	}
}

func header(m *dbus.Message, field dbus.HeaderField) string {
	text, _ := m.Headers[field].Value().(string)
	return text
}

func (c *conn) addMatch(call *dbus.Message) error {
	var text string
	if err := dbus.Store(call.Body, &text); err != nil {
		return c.invalid(call, err)
	}
	r, err := parseRule(text)
	if err != nil {
		return c.fail(call, "org.freedesktop.DBus.Error.MatchRuleInvalid", err.Error())
	}
	c.mu.Lock()
	c.rules = append(c.rules, r)
	c.mu.Unlock()
	return c.reply(call, busName)
}

func (c *conn) property(call *dbus.Message) error {
	var of, name string
	if err := dbus.Store(call.Body, &of, &name); err != nil {
		return c.invalid(call, err)
	}
	if of != logindInterface || name != "InhibitDelayMaxUSec" {
		return c.fail(call, "org.freedesktop.DBus.Error.UnknownProperty", of+"."+name+" is not in this stand-in")
	}
	return c.reply(call, logindName, dbus.MakeVariant(uint64(c.bus.delayMax.Microseconds())))
}

func (c *conn) invalid(call *dbus.Message, err error) error {
	return c.fail(call, "org.freedesktop.DBus.Error.InvalidArgs", err.Error())
}

// inhibit gives the client one end of a pipe. The client holds the lock until that end is closed.
func (c *conn) inhibit(ctx context.Context, call *dbus.Message) (err error) {
	i := &Inhibitor{released: make(chan struct{})}
	if err := dbus.Store(call.Body, &i.What, &i.Who, &i.Why, &i.Mode); err != nil {
		return c.invalid(call, err)
	}
	if i.What != "shutdown" || i.Mode != "delay" {
		return c.invalid(call, fmt.Errorf("%s of %s: only a delay of a shutdown is in this stand-in", i.Mode, i.What))
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		return c.fail(call, "org.freedesktop.DBus.Error.LimitsExceeded", err.Error())
	}
	defer func() { err = errors.Join(err, theirs.Close()) }()
	c.bus.hold(ctx, i, ours)
	return c.reply(call, logindName, dbus.UnixFD(theirs.Fd()))
}

// hold registers a lock until the last copy of the pipe's other end is closed, or ctx ends.
func (l *Logind) hold(ctx context.Context, i *Inhibitor, ours *os.File) {
	l.mu.Lock()
	l.inhibitors = append(l.inhibitors, i)
	l.mu.Unlock()
	l.holders.Go(func() {
		stop := context.AfterFunc(ctx, func() { _ = ours.Close() })
		_, _ = io.Copy(io.Discard, ours) // until the other end or ours is closed
		if stop() {
			_ = ours.Close()
		}
		l.mu.Lock()
		l.inhibitors = slices.DeleteFunc(l.inhibitors, func(o *Inhibitor) bool { return o == i })
		l.mu.Unlock()
		close(i.released)
	})
}
