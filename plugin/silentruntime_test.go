package plugin

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/net/multiplex"
	"github.com/containerd/ttrpc"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A runtime that takes the connection and says nothing, or closes it at some point,
// is tried again and again, and nothing is left of each attempt.
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
			require.NoError(t, n.rt.Start(n.ctx))
			n.connected()
			n.eventually("it is ready", func() bool { return n.d.Ready() == nil })
		})
	}
}

// registrar takes registrations, and says so.
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
		time.Sleep(10 * time.Millisecond) // for the answer to get through; the test holds without it, too
	case <-time.After(2 * time.Second): // whoever connected has gone
	}
	err = server.Close()
	if ended := <-served; !errors.Is(ended, ttrpc.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

func TestARuntimeThatNeverConfiguresThePluginIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConnection(Options{Log: discard()}, newPacer(Options{Log: discard()}, nil, newMetrics()))
		conn := &watchedConn{closed: make(chan struct{})}
		never := newLateAnswers(func() time.Duration { return 0 })
		begin := time.Now()
		require.ErrorIs(t, c.watch(t.Context(), c.begin(), conn, never, make(chan error, 1)), errSilent)
		assert.Equal(t, registrationLimit, time.Since(begin))

		number := c.begin()
		require.NoError(t, c.configured(number, "containerd", "2.4.2", time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.NoError(t, c.watch(ctx, number, conn, never, make(chan error, 1)), "it may take its time to tell what it runs")
		_, _, _, _, err := c.state()
		require.ErrorIs(t, err, errNotSynced)
	})
}

func TestWhatAnEndedConnectionStillSaysDoesNotCount(t *testing.T) {
	t.Parallel()
	c := newConnection(Options{Log: discard()}, newPacer(Options{Log: discard()}, nil, newMetrics()))
	number := c.begin()
	require.NoError(t, c.configured(number, "containerd", "2.4.2", time.Second))
	assert.False(t, c.end(time.Now()).synchronized)
	c.becameSynchronized(number)
	_, _, _, _, err := c.state()
	require.Error(t, err, "it is not ready by the word of a connection that is gone")
	require.ErrorIs(t, c.configured(number, "containerd", "2.4.2", time.Second), errClosed)
}

func TestTheSameFaultIsWarnedOfOnceInAWhile(t *testing.T) {
	t.Parallel()
	n := unconnectedNode(t, oneAtATime)
	logged := n.logged()
	c := newConnection(n.options, newPacer(n.options, nil, newMetrics()))
	for i := range 100 {
		c.warn(now0.Add(time.Duration(i)*time.Second), errSilent, time.Second)
	}
	c.warn(now0.Add(2*time.Minute), errClosed, time.Second)
	c.warn(now0.Add(2*time.Minute+remindEvery), errClosed, time.Second)
	assert.Equal(t, 3, strings.Count(logged(), "level=warning"))
}
