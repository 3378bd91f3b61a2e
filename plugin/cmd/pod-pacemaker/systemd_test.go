package main

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

// notifySocket makes the socket at which systemd would listen.
func notifySocket(t *testing.T) *net.UnixConn {
	t.Helper()
	path := filepath.Join(shortDir(t), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, conn.Close()) })
	t.Setenv("NOTIFY_SOCKET", path)
	return conn
}

func told(t *testing.T, conn *net.UnixConn) string {
	t.Helper()
	buf := make([]byte, 256)
	n, err := conn.Read(buf)
	require.NoError(t, err)
	return string(buf[:n])
}

// serves tells systemd about a daemon, each time within a short time, until stop is called.
func serves(t *testing.T, d daemon, within time.Duration) (stop func()) {
	t.Helper()
	log, _ := logtest.NewNullLogger()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	u := &systemdUnit{daemon: d, log: log, readyMost: within, statusEvery: within}
	go func() { u.serve(ctx); close(done) }()
	return func() {
		cancel()
		<-done
	}
}

func TestSystemdIsNotifiedOfReadyAndStop(t *testing.T) {
	conn := notifySocket(t)
	s := newStage(nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	code := make(chan int, 1)
	go func() { code <- s.run(ctx, []string{"run"}) }()
	<-s.puppet.running
	s.puppet.ready.Store(true)
	assert.Equal(t, "READY=1\nSTATUS=ready: pods start as the configuration in force says", told(t, conn))
	cancel()
	assert.Equal(t, "STOPPING=1", told(t, conn))
	assert.Equal(t, exitOK, <-code)
}

// A daemon that was never ready must not report that it was.
func TestSystemdIsNotNotifiedTooEarly(t *testing.T) {
	conn := notifySocket(t)
	s := newStage(nil)
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() { code <- s.run(ctx, []string{"run"}) }()
	<-s.puppet.running
	cancel()
	assert.Equal(t, "STOPPING=1", told(t, conn))
	assert.Equal(t, exitOK, <-code)
}

func TestSystemdThatDoesNotListenIsLogged(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "absent"))
	log, hook := logtest.NewNullLogger()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	(&systemdUnit{daemon: &puppet{}, log: log, readyMost: readyMost, statusEvery: statusEvery}).serve(ctx)
	require.Len(t, hook.AllEntries(), 1)
	assert.Equal(t, logrus.WarnLevel, hook.LastEntry().Level)
	assert.Equal(t, "STOPPING=1", hook.LastEntry().Data["state"])
}

// A runtime without NRI must not keep kubelet from starting, and must not make systemd restart the daemon again and
// again.
func TestSystemdDoesNotWaitForTheRuntimeForLong(t *testing.T) {
	conn := notifySocket(t)
	stop := serves(t, &puppet{}, time.Millisecond)
	assert.Equal(t, "READY=1\nSTATUS=pods start unpaced: not yet", told(t, conn))
	stop()
	assert.Equal(t, "STOPPING=1", told(t, conn))
}

func TestSystemdIsNotifiedWhenTheStatusChanges(t *testing.T) {
	conn := notifySocket(t)
	d := &puppet{}
	defer serves(t, d, time.Millisecond)()
	told(t, conn)
	d.ready.Store(true)
	assert.Equal(t, "STATUS=ready: pods start as the configuration in force says", told(t, conn))
}

func TestSystemdIsNotifiedOfAStandby(t *testing.T) {
	conn := notifySocket(t)
	defer serves(t, standby{}, time.Hour)()
	assert.Equal(t, "READY=1\nSTATUS=standby: another daemon paces the pods of this node", told(t, conn), "the units after this one need not wait")
}

// standby is a daemon that stands by.
type standby struct{ daemon }

func (standby) Ready() error { return admin.ErrStandby }

// The watchdog gets its ping while the daemon makes decisions, and no longer.
func TestTheWatchdogPingStopsWithTheDecisions(t *testing.T) {
	conn := notifySocket(t)
	t.Setenv("WATCHDOG_USEC", "60000")
	log, logged := logtest.NewNullLogger()
	d := &puppet{}
	d.ready.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	u := &systemdUnit{daemon: d, log: log, readyMost: time.Hour, statusEvery: time.Millisecond}
	go func() { u.serve(ctx); close(done) }()
	told(t, conn)
	for range 3 {
		assert.Equal(t, "WATCHDOG=1", told(t, conn))
	}
	d.stuck.Store(true)
	require.Eventually(t, func() bool { return len(logged.AllEntries()) > 1 }, time.Minute, time.Millisecond)
	d.ready.Store(false)
	next := told(t, conn)
	for next == "WATCHDOG=1" { // pings that were already on their way
		next = told(t, conn)
	}
	assert.Equal(t, "STATUS=pods start unpaced: not yet", next, "no further ping comes")
	d.stuck.Store(false)
	assert.Equal(t, "WATCHDOG=1", told(t, conn))
	cancel()
	for told(t, conn) != "STOPPING=1" { // the unit waits while its socket is full
	}
	<-done
}
