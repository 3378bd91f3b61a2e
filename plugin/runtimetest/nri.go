package runtimetest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/net/multiplex"
	"github.com/containerd/ttrpc"
)

// nri is what the runtime asks of its NRI adaptation.
type nri interface {
	RunPodSandbox(context.Context, *adaptation.RunPodSandboxRequest) error
	StopPodSandbox(context.Context, *adaptation.StopPodSandboxRequest) error
	RemovePodSandbox(context.Context, *adaptation.RemovePodSandboxRequest) error
	CreateContainer(context.Context, *adaptation.CreateContainerRequest) (*adaptation.CreateContainerResponse, error)
	PostStartContainer(context.Context, *adaptation.PostStartContainerRequest) error
	StopContainer(context.Context, *adaptation.StopContainerRequest) (*adaptation.StopContainerResponse, error)
	RemoveContainer(context.Context, *adaptation.RemoveContainerRequest) error
	// keepFromSync keeps plugins from synchronising until release is called.
	keepFromSync() (release func())
	Stop()
}

// realNRI is NRI's own.
type realNRI struct{ *adaptation.Adaptation }

func (r realNRI) keepFromSync() (release func()) { return r.BlockPluginSync().Unblock }

// memoryNRI speaks NRI's protocol over connections in memory, in the way of NRI's own adaptation: that listens at a
// socket only, and waits under mutexes. It has what one plugin needs: no order of plugins, and no joined adjustments.
type memoryNRI struct {
	name, version string
	timeout       time.Duration
	synchronize   func(context.Context, adaptation.SyncCB) error
	server        []ttrpc.ServerOpt
	listener      *Listener
	syncing       *sharedLock
	ended         func(why any)
	rejects       func(*api.PodSandbox, *api.Container) error

	calling lock // held through each call to the plugin
	// guarded by calling
	plugin *memoryPlugin // nil if none is connected
}

// accept takes one plugin at a time from its connection to its synchronisation, until the listener is closed.
func (n *memoryNRI) accept() {
	for {
		conn, err := n.listener.Accept()
		if err != nil {
			return
		}
		p, err := n.connect(conn)
		if err != nil {
			_ = conn.Close() // the plugin notices
			continue
		}
		release := n.syncing.take()
		if n.synchronize(context.Background(), p.synchronize) == nil {
			n.calling.Lock()
			n.plugin = p
			n.calling.Unlock()
		} else {
			p.close()
		}
		release()
	}
}

// memoryPlugin is the runtime's end of a plugin. It is the service with which the plugin registers.
type memoryPlugin struct {
	nri        *memoryNRI
	calls      api.PluginService
	events     api.EventMask
	registered chan struct{}
	closed     chan struct{}
	close      func()
}

func (n *memoryNRI) connect(conn net.Conn) (*memoryPlugin, error) {
	mux := multiplex.Multiplex(conn, multiplex.WithBlockedRead())
	plugin, err := mux.Open(multiplex.PluginServiceConn)
	if err != nil {
		return nil, err
	}
	listener, err := mux.Listen(multiplex.RuntimeServiceConn)
	if err != nil {
		return nil, err
	}
	server, err := ttrpc.NewServer(n.server...)
	if err != nil {
		return nil, err
	}
	p := &memoryPlugin{nri: n, registered: make(chan struct{}), closed: make(chan struct{})}
	var client *ttrpc.Client
	p.close = sync.OnceFunc(func() {
		close(p.closed)
		_ = errors.Join(mux.Close(), client.Close(), server.Close(), listener.Close()) // the other end may have closed them
	})
	client = ttrpc.NewClient(plugin, ttrpc.WithOnClose(func() { go p.close() }))
	p.calls = api.NewPluginClient(client)
	api.RegisterRuntimeService(server, p)
	go func() {
		_ = server.Serve(context.Background(), listener) // it ends with the connection
		p.close()
	}()
	mux.Unblock()
	select {
	case <-p.registered:
	case <-p.closed:
		return nil, errors.New("the plugin went away before it registered")
	case <-time.After(adaptation.DefaultPluginRegistrationTimeout):
		p.close()
		return nil, errors.New("plugin registration timed out")
	}
	ctx, cancel := context.WithTimeout(context.Background(), n.timeout)
	defer cancel()
	reply, err := p.calls.Configure(ctx, &api.ConfigureRequest{
		RuntimeName: n.name, RuntimeVersion: n.version, RequestTimeout: n.timeout.Milliseconds(),
		RegistrationTimeout: adaptation.DefaultPluginRegistrationTimeout.Milliseconds(),
	})
	if err != nil {
		p.close()
		return nil, fmt.Errorf("configure the plugin: %w", err)
	}
	p.events = api.EventMask(reply.GetEvents())
	return p, nil
}

// RegisterPlugin implements [api.RuntimeService].
func (p *memoryPlugin) RegisterPlugin(context.Context, *api.RegisterPluginRequest) (*api.Empty, error) {
	close(p.registered)
	return &api.Empty{}, nil
}

// UpdateContainers implements [api.RuntimeService].
func (p *memoryPlugin) UpdateContainers(_ context.Context, r *api.UpdateContainersRequest) (*api.UpdateContainersResponse, error) {
	return &api.UpdateContainersResponse{Failed: r.GetUpdate()}, noUpdates(r.GetUpdate())
}

// synchronize lists all pods and containers in messages of at most 4 MiB, in the way of NRI 0.12, and with its fault: where
// few are left, a slice may be out of range, and the runtime ends.
func (p *memoryPlugin) synchronize(ctx context.Context, pods []*api.PodSandbox, containers []*api.Container) (updates []*api.ContainerUpdate, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.nri.timeout)
	defer cancel()
	defer func() {
		if why := recover(); why != nil {
			p.nri.ended(why)
			err = fmt.Errorf("the runtime has ended: %v", why)
		}
	}()
	podsNow, containersNow := len(pods), len(containers)
	for {
		request := &api.SynchronizeRequest{
			Pods: pods[:podsNow:len(pods)], Containers: containers[:containersNow:len(containers)],
			More: len(pods) > podsNow || len(containers) > containersNow,
		}
		reply, err := p.calls.Synchronize(ctx, request)
		switch {
		case err != nil:
			if podsNow, containersNow, err = fewer(podsNow, containersNow, err); err != nil {
				p.close()
				return nil, err
			}
		case !request.More:
			return reply.GetUpdate(), nil
		case len(reply.GetUpdate()) > 0 || !reply.GetMore():
			p.close()
			return nil, errors.New("plugin does not handle split sync requests")
		default:
			pods, containers = pods[podsNow:], containers[containersNow:]
			podsNow, containersNow = min(podsNow, len(pods)), min(containersNow, len(containers))
		}
	}
}

// fewer is NRI's recalcObjsPerSyncMsg.
func fewer(pods, containers int, err error) (fewerPods, fewerContainers int, failed error) {
	const least = 8
	var large *ttrpc.OversizedMessageErr
	if !errors.As(err, &large) || pods+containers <= least {
		return pods, containers, fmt.Errorf("failed to synchronize plugin with split messages: %w", err)
	}
	factor := min(float64(large.MaximumLength())/float64(large.RejectedLength()), 0.9)
	pods, containers = int(float64(pods)*factor), int(float64(containers)*factor)
	if pods+containers < least {
		pods, containers = least/2, least/2
	}
	return pods, containers, nil
}

// ask sends a request to the plugin, if there is one that subscribed to the event. A plugin that is gone or too slow is
// disconnected, and the request continues as if it had agreed.
func ask[Request, Reply any](ctx context.Context, n *memoryNRI, event api.Event, call func(api.PluginService, context.Context, Request) (Reply, error), request Request) (reply Reply, err error) {
	n.calling.Lock()
	defer n.calling.Unlock()
	p := n.plugin
	if p == nil || !p.events.IsSet(event) {
		return reply, nil
	}
	within, cancel := context.WithTimeout(ctx, n.timeout)
	defer cancel()
	reply, err = call(p.calls, within, request)
	if err == nil || ctx.Err() != nil || !fatal(err) {
		return reply, err
	}
	p.close()
	n.plugin = nil
	var none Reply
	return none, nil
}

// fatal reports whether NRI gives up a plugin that answers so.
func fatal(err error) bool {
	return errors.Is(err, ttrpc.ErrClosed) || errors.Is(err, ttrpc.ErrServerClosed) || errors.Is(err, ttrpc.ErrProtocol) || errors.Is(err, context.DeadlineExceeded)
}

func (n *memoryNRI) RunPodSandbox(ctx context.Context, r *api.RunPodSandboxRequest) error {
	_, err := ask(ctx, n, api.Event_RUN_POD_SANDBOX, api.PluginService.RunPodSandbox, r)
	return err
}

func (n *memoryNRI) StopPodSandbox(ctx context.Context, r *api.StopPodSandboxRequest) error {
	_, err := ask(ctx, n, api.Event_STOP_POD_SANDBOX, api.PluginService.StopPodSandbox, r)
	return err
}

func (n *memoryNRI) RemovePodSandbox(ctx context.Context, r *api.RemovePodSandboxRequest) error {
	_, err := ask(ctx, n, api.Event_REMOVE_POD_SANDBOX, api.PluginService.RemovePodSandbox, r)
	return err
}

func (n *memoryNRI) CreateContainer(ctx context.Context, r *api.CreateContainerRequest) (*api.CreateContainerResponse, error) {
	reply, err := ask(ctx, n, api.Event_CREATE_CONTAINER, api.PluginService.CreateContainer, r)
	if err == nil && n.rejects != nil {
		err = n.rejects(r.GetPod(), r.GetContainer())
	}
	return reply, err
}

func (n *memoryNRI) PostStartContainer(ctx context.Context, r *api.PostStartContainerRequest) error {
	_, err := ask(ctx, n, api.Event_POST_START_CONTAINER, api.PluginService.PostStartContainer, r)
	return err
}

func (n *memoryNRI) StopContainer(ctx context.Context, r *api.StopContainerRequest) (*api.StopContainerResponse, error) {
	return ask(ctx, n, api.Event_STOP_CONTAINER, api.PluginService.StopContainer, r)
}

func (n *memoryNRI) RemoveContainer(ctx context.Context, r *api.RemoveContainerRequest) error {
	_, err := ask(ctx, n, api.Event_REMOVE_CONTAINER, api.PluginService.RemoveContainer, r)
	return err
}

func (n *memoryNRI) keepFromSync() (release func()) { return n.syncing.share() }

func (n *memoryNRI) Stop() { _ = n.listener.Close() } // it never fails
