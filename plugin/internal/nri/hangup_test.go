package nri

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// runs runs a connection to a socket until the test ends.
func runs(t *testing.T, socket string) *Connection {
	t.Helper()
	log, _ := logtest.NewNullLogger()
	c := New(Options{
		Socket: socket, Name: "pacemaker", Index: "05", Log: log, FirstPause: time.Millisecond,
		Handler: &heard{call: func() {}, reconnected: func() {}},
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return c
}

// A runtime may accept the connection and not answer, or close it at some point. The daemon tries again and again,
// and no attempt leaves anything behind.
func TestARuntimeThatHangsUpIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, serve := range map[string]func(net.Conn){
		"at once":            func(c net.Conn) { c.Close() },
		"after the greeting": func(c net.Conn) { _, _ = c.Read(make([]byte, 1)); c.Close() },
		"after registration": func(c net.Conn) { assert.NoError(t, registers(t.Context(), c, func(api.PluginService) {})) },
		"with nonsense":      func(c net.Conn) { _, _ = c.Write(make([]byte, 4096)); c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			socket, tried := aSocket(t), make(chan struct{}, 100)
			stop := listens(t, socket, func(c net.Conn) {
				select {
				case tried <- struct{}{}:
				default:
				}
				serve(c)
			})
			c := runs(t, socket)
			for range 3 {
				<-tried
				require.Error(t, c.Paces())
			}
			stop()

			paced := make(chan error, 1)
			listens(t, socket, func(conn net.Conn) {
				assert.NoError(t, registers(t.Context(), conn, func(plugin api.PluginService) {
					select {
					case paced <- synchronizes(t.Context(), plugin, c):
					default: // the connection was closed, and this is the next
					}
				}))
			})
			require.NoError(t, <-paced)
		})
	}
}

// synchronizes takes the steps of a runtime after the registration, and returns whether the connection is in use then.
func synchronizes(ctx context.Context, plugin api.PluginService, c *Connection) error {
	if _, err := plugin.Configure(ctx, &api.ConfigureRequest{RuntimeName: "containerd", RuntimeVersion: "2.4.2", RequestTimeout: 2000}); err != nil {
		return err
	}
	if _, err := plugin.Synchronize(ctx, &api.SynchronizeRequest{}); err != nil {
		return err
	}
	return c.Paces()
}
