package gatetest

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/socket"
)

// Socket returns the path of a socket in a new directory of tb. The path is
// short enough for a unix socket whatever the test's name is.
func Socket(tb TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "gate")
	noError(tb, err)
	tb.Cleanup(func() { noError(tb, os.RemoveAll(dir)) })
	return filepath.Join(dir, "run", "gate.sock")
}

// Quiet returns a logger that says nothing.
func Quiet() logrus.FieldLogger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return log
}

// Serve listens at path and serves b, until the returned function is called or tb
// ends.
func Serve(tb TB, path string, b gate.Backend) (stop func()) {
	tb.Helper()
	l, err := socket.Listen(path)
	noError(tb, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- gate.NewServer(b, func() {}, Quiet()).Serve(ctx, l) }()
	stop = sync.OnceFunc(func() {
		cancel()
		noError(tb, Receive(tb, served, "the server stops"))
	})
	tb.Cleanup(stop)
	return stop
}

// Listen accepts at a new socket and gives each connection to serve, in the place of a [gate.Server], until tb ends.
func Listen(tb TB, serve func(net.Conn)) (path string) {
	tb.Helper()
	path = Socket(tb)
	l, err := socket.Listen(path)
	noError(tb, err)
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
		noError(tb, l.Close())
		serving.Wait()
	})
	return path
}

func noError(tb TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatalf("%v", err)
	}
}
