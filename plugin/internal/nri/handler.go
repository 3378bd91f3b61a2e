package nri

import (
	"context"
	"path"
	"strings"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"
	"github.com/containerd/ttrpc"
	"github.com/sirupsen/logrus"
)

// Handler answers the runtime. Its methods are called from many goroutines at once. They must be quick, because the
// runtime holds two global locks during each call that names a pod.
type Handler interface {
	// Connected is called with the runtime's name, its version and the time after which it gives up a request. It
	// returns log fields that say for what the runtime cannot be used. They are logged with the registration, and
	// their names and values are in its message.
	Connected(runtime, version string, requestTimeout time.Duration) logrus.Fields
	// Lost is called when a connection that was synchronized has ended. Reconnected is called when the next connection
	// after that is synchronized.
	Lost(why error)
	Reconnected()
	// Delayed is called when the daemon does not register for a reason that may last, and why says more.
	Delayed(reason Delay, why error)
	// RegistersDuringStop is called when the daemon registers while containerd is stopping a container, which blocks all
	// pods of the node until it has stopped.
	RegistersDuringStop()
	// Took is called after each call of the runtime, with its name, such as RunPodSandbox, and its duration.
	Took(now time.Time, call string, took time.Duration)
	// Panicked is called for each panic that was caught. part is the name of the call, or stub. The pod starts
	// nevertheless; pod is nil if the call names no pod.
	Panicked(part string, fault any, pod *api.PodSandbox)

	// Synchronize is called once for each connection, with all pods and containers that exist.
	Synchronize(pods []*api.PodSandbox, ctrs []*api.Container)

	// An error of RunPodSandbox or CreateContainer refuses the pod for now.
	stub.RunPodInterface
	stub.StopPodInterface
	stub.RemovePodInterface
	stub.CreateContainerInterface
	stub.PostStartContainerInterface
	stub.StopContainerInterface
	stub.RemoveContainerInterface
}

// plugin is what the NRI stub calls: the handler, and the connection with this number for the two calls that change its
// state.
type plugin struct {
	Handler
	connection *Connection
	number     int
	listed     func()
	stub       stub.Stub // knows the runtime's request timeout once the runtime configures it
}

// Configure implements stub.ConfigureInterface.
func (p *plugin) Configure(_ context.Context, _, runtime, version string) (api.EventMask, error) {
	return 0, p.connection.configured(p.number, runtime, version, Timeouts{Registration: p.stub.RegistrationTimeout(), Request: p.stub.RequestTimeout()}) // 0 subscribes to every event that plugin has a method for
}

// Synchronize implements stub.SynchronizeInterface.
func (p *plugin) Synchronize(_ context.Context, pods []*api.PodSandbox, ctrs []*api.Container) ([]*api.ContainerUpdate, error) {
	defer func() { // also after a panic, which intercept catches
		p.connection.becameSynchronized(p.number)
		p.listed()
	}()
	p.Handler.Synchronize(pods, ctrs)
	return nil, nil
}

// intercept returns what runs around every call of the runtime. It measures the call, and catches a panic: the daemon
// stays, and the pod starts.
func (c *Connection) intercept(late *lateAnswers) ttrpc.UnaryServerInterceptor {
	return func(ctx context.Context, decode ttrpc.Unmarshaler, call *ttrpc.UnaryServerInfo, method ttrpc.Method) (reply any, err error) {
		begin := time.Now()
		number := late.begins(begin)
		var request any
		defer func() {
			now := time.Now()
			name, pod := nameCall(call.FullMethod, request)
			c.handler.Took(now, name, now.Sub(begin))
			late.ends(number, now)
			if fault := recover(); fault != nil {
				c.handler.Panicked(name, fault, pod)
				// A message without fields has one encoding for every type. It means: continue, and change nothing.
				reply, err = &api.Empty{}, nil
			}
		}()
		return method(ctx, func(message any) error {
			request = message
			return decode(message)
		})
	}
}

// nameCall returns the name of a call, such as RunPodSandbox, and the pod that it names, or nil if it names none. An
// old runtime sends most calls as a StateChange with the name as a constant, such as RUN_POD_SANDBOX.
func nameCall(fullMethod string, request any) (name string, pod *api.PodSandbox) {
	name = path.Base(fullMethod)
	if change, ok := request.(*api.StateChangeEvent); ok {
		name = ""
		for word := range strings.SplitSeq(change.GetEvent().String(), "_") {
			name += word[:1] + strings.ToLower(word[1:])
		}
	}
	if named, ok := request.(interface{ GetPod() *api.PodSandbox }); ok {
		pod = named.GetPod()
	}
	return name, pod
}
