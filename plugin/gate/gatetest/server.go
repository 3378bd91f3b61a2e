package gatetest

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/rundir"
)

// Socket returns the path of a socket in a new directory of tb. The path is short enough for a unix socket, for any
// test name.
func Socket(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "gate")
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, os.RemoveAll(dir)) })
	return filepath.Join(dir, "run", "gate.sock")
}

// Quiet returns a logger that writes nothing.
func Quiet() logrus.FieldLogger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return log
}

// Serving returns a backend, and the socket at which it is served until tb ends.
func Serving(tb testing.TB) (b *Backend, path string) {
	tb.Helper()
	b, path = NewBackend(), Socket(tb)
	Serve(tb, path, b)
	return b, path
}

// Serve serves b at path, until stop is called or tb ends.
func Serve(tb testing.TB, path string, b gate.Backend) (stop func()) {
	tb.Helper()
	l, err := rundir.Listen(path, 0o600)
	require.NoError(tb, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- gate.NewServer(b, func() {}, Quiet()).Serve(ctx, l) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(tb, Receive(tb, served, "the server stops"))
	})
	tb.Cleanup(stop)
	return stop
}

// Listen accepts connections at a new socket and calls serve for each, instead of a [gate.Server], until tb ends.
func Listen(tb testing.TB, serve func(net.Conn)) (path string) {
	tb.Helper()
	path = Socket(tb)
	l, err := rundir.Listen(path, 0o600)
	require.NoError(tb, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				serve(c)
			})
		}
	})
	tb.Cleanup(func() {
		require.NoError(tb, l.Close())
		serving.Wait()
	})
	return path
}
