package plugin

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/net/multiplex"
	"github.com/containerd/ttrpc"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A runtime may accept the connection and not answer, or close it at some point. The daemon tries again and again,
// and no attempt leaves anything behind.
func TestARuntimeThatHangsUpIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, serve := range map[string]func(net.Conn){
		"at once":            func(c net.Conn) { c.Close() },
		"after the greeting": func(c net.Conn) { _, _ = c.Read(make([]byte, 1)); c.Close() },
		"after registration": func(c net.Conn) { assert.NoError(t, registers(t.Context(), c)) },
		"with nonsense":      func(c net.Conn) { _, _ = c.Write(make([]byte, 4096)); c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := unconnectedNode(t, oneAtATime)
			listener, err := net.Listen("unix", n.options.NRISocket)
			require.NoError(t, err)
			tried := make(chan struct{}, 100)
			n.kept.Go(func() {
				for {
					c, err := listener.Accept()
					if err != nil {
						return
					}
					select {
					case tried <- struct{}{}:
					default:
					}
					serve(c)
				}
			})
			n.startDaemon()
			for range 3 {
				<-tried
				require.Error(t, n.d.Ready())
			}
			require.NoError(t, listener.Close())
			require.NoError(t, n.rt.Start())
			n.connected()
			n.eventually("the daemon is ready", func() bool { return n.d.Ready() == nil })
		})
	}
}

// registrar accepts registrations, and sends on registered for the first.
type registrar struct{ registered chan struct{} }

func (r registrar) RegisterPlugin(context.Context, *api.RegisterPluginRequest) (*api.Empty, error) {
	select {
	case r.registered <- struct{}{}:
	default:
	}
	return &api.Empty{}, nil
}

func (registrar) UpdateContainers(context.Context, *api.UpdateContainersRequest) (*api.UpdateContainersResponse, error) {
	return &api.UpdateContainersResponse{}, nil
}

// registers serves a connection until the plugin has registered, and closes it.
func registers(ctx context.Context, c net.Conn) error {
	defer c.Close()
	r := registrar{registered: make(chan struct{}, 1)}
	mux := multiplex.Multiplex(c)
	defer mux.Close()
	listener, err := mux.Listen(multiplex.RuntimeServiceConn)
	if err != nil {
		return err
	}
	server, err := ttrpc.NewServer()
	if err != nil {
		return err
	}
	api.RegisterRuntimeService(server, r)
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }()
	select {
	case <-r.registered:
		time.Sleep(10 * time.Millisecond) // for the answer to arrive; the test passes without it, too
	case <-time.After(2 * time.Second): // the client has gone
	}
	err = server.Close()
	if ended := <-served; !errors.Is(ended, ttrpc.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}
