package plugin

import (
	"context"
	"fmt"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cni"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/nri"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/starts"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
)

// handler passes the calls of the runtime on to the packages of the daemon. It decides nothing.
type handler struct {
	starts      *starts.Starts
	waiting     *waiting.Chooser
	observer    *observe.Observer
	cni         *cni.Installer // nil if no waiting room is installed
	refuseLarge bool           // refuse what is larger than mostListed
}

var _ nri.Handler = handler{} // whose comments say when each method is called

func (h handler) Connected(runtime, version string, requestTimeout time.Duration) logrus.Fields {
	return h.waiting.Connected(runtime, version, requestTimeout)
}

func (h handler) Lost(why error) { h.observer.Report(observe.RuntimeLost{Why: why}) }

func (h handler) Reconnected() { h.observer.Report(observe.RuntimeBack{}) }

func (h handler) Delayed(reason nri.Delay, why error) {
	h.observer.Report(observe.RegistrationDelayed{Delay: string(reason), Why: why})
}

func (h handler) RegistersDuringStop() { h.observer.Report(observe.RegistersDuringStop{}) }

func (h handler) Took(now time.Time, call string, took time.Duration) {
	h.observer.Report(observe.HandlerCall{Name: call, Took: took})
	h.waiting.Took(now, took)
}

func (h handler) Panicked(part string, fault any, pod *api.PodSandbox) {
	fields := logrus.Fields{}
	if pod != nil {
		fields = logrus.Fields{"pod_namespace": pod.GetNamespace(), "pod_name": pod.GetName(), "pod_uid": pod.GetUid()}
		if part == "RunPodSandbox" || part == "CreateContainer" {
			h.observer.Report(observe.Unpaced{Pod: observe.Pod{UID: starts.Key(pod), Name: starts.NameOf(pod)}, Reason: observe.Panic})
		}
	}
	h.observer.Panicked(part, fault, fields)
}

func (h handler) Synchronize(sandboxes []*api.PodSandbox, ctrs []*api.Container) {
	h.starts.Synchronize(sandboxes, ctrs)
}

func (h handler) RunPodSandbox(ctx context.Context, pod *api.PodSandbox) error {
	if err := h.large(pod, pod.SizeVT(), ""); err != nil {
		return err
	}
	made(h.cni, pod)
	return h.waiting.Sandbox(ctx, pod)
}

func (h handler) StopPodSandbox(_ context.Context, pod *api.PodSandbox) error {
	h.starts.SandboxStopped(pod)
	return nil
}

func (h handler) RemovePodSandbox(_ context.Context, pod *api.PodSandbox) error {
	h.starts.SandboxRemoved(pod)
	return nil
}

func (h handler) CreateContainer(ctx context.Context, pod *api.PodSandbox, ctr *api.Container) (*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	if err := h.large(pod, ctr.SizeVT(), ctr.GetId()); err != nil {
		return nil, nil, err
	}
	hook, err := h.waiting.Container(ctx, pod, ctr)
	if hook == nil {
		return nil, nil, err
	}
	adjustment := &api.ContainerAdjustment{}
	adjustment.AddHooks(&api.Hooks{CreateRuntime: []*api.Hook{hook}})
	return adjustment, nil, err
}

// mostListed is how many bytes the runtime may list of a sandbox or container. With all below it, every listing succeeds:
// see nri/listing.go.
const mostListed = 256 << 10

// large reports a sandbox or container if the runtime lists more than mostListed bytes of it. It returns an error if it
// is to be refused. container is empty for the sandbox.
func (h handler) large(pod *api.PodSandbox, listed int, container string) error {
	if listed <= mostListed {
		return nil
	}
	h.observer.Report(observe.LargeEnvironment{
		Made:  observe.Made{Pod: observe.Pod{UID: starts.Key(pod), Name: starts.NameOf(pod)}, Sandbox: pod.GetId(), Container: container},
		Bytes: listed, Refused: h.refuseLarge,
	})
	if !h.refuseLarge {
		return nil
	}
	return fmt.Errorf("pod-pacemaker: %d KiB of environment, labels and annotations, more than %d KiB (--refuse-large-environments)", listed>>10, mostListed>>10)
}

func (h handler) PostStartContainer(_ context.Context, pod *api.PodSandbox, ctr *api.Container) error {
	h.waiting.ContainerStarted(starts.NameOf(pod), ctr.GetId())
	h.starts.ContainerStarted(pod, ctr)
	return nil
}

func (h handler) StopContainer(_ context.Context, pod *api.PodSandbox, ctr *api.Container) ([]*api.ContainerUpdate, error) {
	h.waiting.ContainerGone(starts.NameOf(pod), ctr.GetId())
	h.starts.ContainerStopped(pod, ctr)
	return nil, nil
}

func (h handler) RemoveContainer(_ context.Context, pod *api.PodSandbox, ctr *api.Container) error {
	h.waiting.ContainerGone(starts.NameOf(pod), ctr.GetId())
	h.starts.ContainerRemoved(pod, ctr)
	return nil
}
