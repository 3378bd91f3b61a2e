package logind

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// started returns a bus and the address of its socket.
func started(t *testing.T, delayMax time.Duration) (l *Logind, address string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "bus")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	path := filepath.Join(dir, "bus.sock")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	l = New(delayMax)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- l.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-served)
	})
	return l, "unix:path=" + path
}

// connected returns a connection of the library that the kubelet uses, too.
func connected(t *testing.T, address string) *dbus.Conn {
	t.Helper()
	c, err := dbus.Connect(address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func manager(c *dbus.Conn) dbus.BusObject { return c.Object(logindName, logindPath) }

// inhibited takes the lock that a kubelet takes.
func inhibited(t *testing.T, c *dbus.Conn) (lock int) {
	t.Helper()
	var fd dbus.UnixFD
	require.NoError(t, manager(c).Call(logindInterface+".Inhibit", 0, "shutdown", "kubelet", "it has pods to end", "delay").Store(&fd))
	return int(fd)
}

// listening makes a connection listen for shutdowns, as a kubelet does.
func listening(t *testing.T, c *dbus.Conn) <-chan *dbus.Signal {
	t.Helper()
	heard := make(chan *dbus.Signal, 8)
	c.Signal(heard)
	require.NoError(t, c.AddMatchSignal(dbus.WithMatchInterface(logindInterface),
		dbus.WithMatchMember("PrepareForShutdown"), dbus.WithMatchObjectPath(logindPath)))
	return heard
}

func TestTheDelayIsReported(t *testing.T) {
	t.Parallel()
	_, address := started(t, 90*time.Second)
	value, err := manager(connected(t, address)).GetProperty(logindInterface + ".InhibitDelayMaxUSec")
	require.NoError(t, err)
	require.Equal(t, uint64(90_000_000), value.Value())
}

// A shutdown is announced to all listeners, and lasts until the last lock is released.
func TestAShutdownWaitsForTheLocks(t *testing.T) {
	t.Parallel()
	l, address := started(t, time.Minute)
	c := connected(t, address)
	first, second := inhibited(t, c), inhibited(t, c)
	heard := listening(t, c)
	require.Len(t, l.Inhibitors(), 2)
	require.Equal(t, "kubelet", l.Inhibitors()[0].Who)
	require.Equal(t, "shutdown", l.Inhibitors()[0].What)
	require.Equal(t, "delay", l.Inhibitors()[0].Mode)
	require.Equal(t, "it has pods to end", l.Inhibitors()[0].Why)

	over := make(chan error, 1)
	go func() {
		_, err := l.Shutdown(t.Context())
		over <- err
	}()
	require.Equal(t, []any{true}, (<-heard).Body)
	require.NoError(t, syscall.Close(first))
	require.Eventually(t, func() bool { return len(l.Inhibitors()) == 1 }, time.Minute, time.Millisecond)
	require.Empty(t, over, "end of the shutdown, while one lock is held")
	require.NoError(t, syscall.Close(second))
	require.NoError(t, <-over)
	require.Empty(t, l.Inhibitors())
}

func TestAShutdownDelayIsBounded(t *testing.T) {
	t.Parallel()
	l, address := started(t, time.Millisecond)
	c := connected(t, address)
	lock := inhibited(t, c)
	listening(t, c)
	_, err := l.Shutdown(t.Context())
	require.ErrorIs(t, err, ErrDelayedTooLong)
	require.ErrorContains(t, err, "kubelet")
	require.NoError(t, syscall.Close(lock))
}

func TestAShutdownWithoutListeners(t *testing.T) {
	t.Parallel()
	l, address := started(t, time.Minute)
	c := connected(t, address)
	require.NoError(t, c.AddMatchSignal(dbus.WithMatchMember("PrepareForSleep")))
	_, err := l.Shutdown(t.Context())
	require.ErrorIs(t, err, ErrNoListener)
}

// A lock ends with the process that holds it, not with its connection.
func TestALockOutlivesItsConnection(t *testing.T) {
	t.Parallel()
	l, address := started(t, time.Minute)
	c, err := dbus.Connect(address)
	require.NoError(t, err)
	lock := inhibited(t, c)
	require.NoError(t, c.Close())
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.conns) == 0
	}, time.Minute, time.Millisecond)
	require.Len(t, l.Inhibitors(), 1)
	require.NoError(t, syscall.Close(lock))
	require.Eventually(t, func() bool { return len(l.Inhibitors()) == 0 }, time.Minute, time.Millisecond)
}

// An unknown request gets an error, and the connection stays open.
func TestUnknownRequestsAreErrors(t *testing.T) {
	t.Parallel()
	_, address := started(t, time.Minute)
	c := connected(t, address)
	for _, call := range []struct {
		name string
		args []any
		want string
	}{
		{logindInterface + ".PowerOff", []any{false}, "org.freedesktop.DBus.Error.UnknownMethod"},
		{logindInterface + ".Inhibit", []any{"sleep", "me", "why", "delay"}, "org.freedesktop.DBus.Error.InvalidArgs"},
		{logindInterface + ".Inhibit", []any{"shutdown", "me", "why", "block"}, "org.freedesktop.DBus.Error.InvalidArgs"},
		{logindInterface + ".Inhibit", []any{"shutdown"}, "org.freedesktop.DBus.Error.InvalidArgs"},
		{"org.freedesktop.DBus.Properties.Get", []any{logindInterface, "Docked"}, "org.freedesktop.DBus.Error.UnknownProperty"},
		{"org.freedesktop.DBus.Properties.Get", []any{1}, "org.freedesktop.DBus.Error.InvalidArgs"},
		{"org.freedesktop.DBus.AddMatch", []any{"arg0='x'"}, "org.freedesktop.DBus.Error.MatchRuleInvalid"},
		{"org.freedesktop.DBus.AddMatch", nil, "org.freedesktop.DBus.Error.InvalidArgs"},
	} {
		var refused dbus.Error
		require.ErrorAs(t, manager(c).Call(call.name, 0, call.args...).Err, &refused, call.name)
		require.Equal(t, call.want, refused.Name, "%s %v", call.name, call.args)
	}
	_, err := manager(c).GetProperty(logindInterface + ".InhibitDelayMaxUSec")
	require.NoError(t, err)
}

// A client that breaks the handshake is disconnected, and the next is served.
func TestABrokenHandshake(t *testing.T) {
	t.Parallel()
	_, address := started(t, time.Minute)
	for _, said := range []string{"AUTH\r\n", "\x00BEGIN\r\nl", "\x00AUTH EXTERNAL 30\r\nBEGIN\r\nno message"} {
		raw, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: address[len("unix:path="):], Net: "unix"})
		require.NoError(t, err)
		_, err = io.Copy(raw, bytes.NewBufferString(said))
		require.NoError(t, err)
		require.NoError(t, raw.CloseWrite())
		_, _ = io.Copy(io.Discard, raw) // until the connection is closed
		require.NoError(t, raw.Close())
	}
	connected(t, address)
}

func TestRules(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"type='signal'": true,
		"type='signal',interface='org.freedesktop.login1.Manager',member='PrepareForShutdown'": true,
		"type='signal',member='PrepareForSleep'":                                               false,
		"path='/org/freedesktop/login1'":                                                       true,
		"path='/org/freedesktop/login1/seat'":                                                  false,
	} {
		r, err := parseRule(text)
		require.NoError(t, err, text)
		require.Equal(t, want, r.wantsShutdown(), text)
	}
	for _, text := range []string{"", "type", "eavesdrop='true'"} {
		_, err := parseRule(text)
		require.Error(t, err, text)
	}
}
