package main

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// notifySocket makes the socket that systemd would listen on.
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

func TestSystemdIsToldOfReadyAndStop(t *testing.T) {
	conn := notifySocket(t)
	s := newStage(nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	code := make(chan int, 1)
	go func() { code <- s.run(ctx, []string{"run"}) }()
	<-s.puppet.running
	s.puppet.becomesReady()
	assert.Equal(t, "READY=1", told(t, conn))
	cancel()
	assert.Equal(t, "STOPPING=1", told(t, conn))
	assert.Equal(t, exitOK, <-code)
}

// A daemon that was never ready does not say that it was.
func TestSystemdIsNotToldTooEarly(t *testing.T) {
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
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "nobody"))
	log, hook := logtest.NewNullLogger()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tellSystemd(ctx, &puppet{}, log)
	require.Len(t, hook.AllEntries(), 1)
	assert.Equal(t, logrus.WarnLevel, hook.LastEntry().Level)
	assert.Equal(t, "STOPPING=1", hook.LastEntry().Data["state"])
}
