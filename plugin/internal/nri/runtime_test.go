package nri

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/net/multiplex"
	"github.com/containerd/ttrpc"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// registrar is the part of a runtime that plugins call. It says once whether one has registered.
type registrar struct{ registered chan struct{} }

func (r registrar) RegisterPlugin(context.Context, *api.RegisterPluginRequest) (*api.Empty, error) {
	close(r.registered)
	return &api.Empty{}, nil
}

func (registrar) UpdateContainers(context.Context, *api.UpdateContainersRequest) (*api.UpdateContainersResponse, error) {
	return &api.UpdateContainersResponse{}, nil
}

// registers serves a connection until the plugin has its answer to the registration, calls then, and closes it. It
// returns nil if the plugin has gone before.
func registers(ctx context.Context, c net.Conn, then func(api.PluginService)) error {
	defer c.Close()
	conn := &watchedConn{Conn: c, closed: make(chan struct{})}
	r := registrar{registered: make(chan struct{})}
	mux := multiplex.Multiplex(conn)
	defer mux.Close()
	listener, err := mux.Listen(multiplex.RuntimeServiceConn)
	if err != nil {
		return err
	}
	plugin, err := mux.Open(multiplex.PluginServiceConn)
	if err != nil {
		return err
	}
	client := ttrpc.NewClient(plugin)
	defer client.Close()
	server, err := ttrpc.NewServer()
	if err != nil {
		return err
	}
	api.RegisterRuntimeService(server, r)
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }()
	select {
	case <-r.registered:
		then(api.NewPluginClient(client))
		err = server.Shutdown(ctx) // once the answer is sent
	case <-conn.closed:
		err = server.Close()
	}
	if ended := <-served; !errors.Is(ended, ttrpc.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// listens serves connections one after another until the test ends, or until the function that it returns is called.
func listens(t *testing.T, socket string, serve func(net.Conn)) (stop func()) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	require.NoError(t, err)
	var served sync.WaitGroup
	served.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			serve(c)
		}
	})
	stop = sync.OnceFunc(func() {
		require.NoError(t, listener.Close())
		served.Wait()
	})
	t.Cleanup(stop)
	return stop
}

// aSocket returns the path of a socket that does not exist yet.
func aSocket(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "nri") // t.TempDir is too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	return filepath.Join(dir, "nri.sock")
}
