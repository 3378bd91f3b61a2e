package plugin

import (
	"context"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/nri"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/pods"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/starts"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
)

// handler passes the calls of the runtime on to the packages of the daemon. It decides nothing.
type handler struct {
	starts   *starts.Starts
	waiting  *waiting.Chooser
	observer *observe.Observer
}

var _ nri.Handler = handler{} // whose comments say when each method is called

func (h handler) Connected(runtime, version string, requestTimeout time.Duration) logrus.Fields {
	return h.waiting.Connected(runtime, version, requestTimeout)
}

func (h handler) Lost(why error) { h.observer.Report(observe.RuntimeLost{Why: why}) }

func (h handler) Reconnected() { h.observer.Report(observe.RuntimeBack{}) }

func (h handler) Took(now time.Time, call string, took time.Duration) {
	h.observer.Report(observe.HandlerCall{Name: call, Took: took})
	h.waiting.Took(now, took)
}

func (h handler) Panicked(part string, fault any, pod *api.PodSandbox) {
	fields := logrus.Fields{}
	if pod != nil {
		fields = logrus.Fields{"pod_namespace": pod.GetNamespace(), "pod_name": pod.GetName(), "pod_uid": pod.GetUid()}
		if part == "RunPodSandbox" || part == "CreateContainer" {
			h.observer.Report(observe.Unpaced{Pod: observe.Pod{UID: pods.Key(pod), Name: podName(pod)}, Reason: observe.Panic})
		}
	}
	h.observer.Panicked(part, fault, fields)
}

func (h handler) Synchronize(sandboxes []*api.PodSandbox, ctrs []*api.Container) {
	h.starts.Runtime.Synchronize(sandboxes, ctrs)
}

func (h handler) RunPodSandbox(ctx context.Context, pod *api.PodSandbox) error {
	return h.waiting.Sandbox(ctx, pod)
}

func (h handler) StopPodSandbox(_ context.Context, pod *api.PodSandbox) error {
	h.starts.Runtime.SandboxStopped(pod)
	return nil
}

func (h handler) RemovePodSandbox(_ context.Context, pod *api.PodSandbox) error {
	h.starts.Runtime.SandboxRemoved(pod)
	return nil
}

func (h handler) CreateContainer(ctx context.Context, pod *api.PodSandbox, ctr *api.Container) (*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	hook, err := h.waiting.Container(ctx, pod, ctr)
	if hook == nil {
		return nil, nil, err
	}
	adjustment := &api.ContainerAdjustment{}
	adjustment.AddHooks(&api.Hooks{CreateRuntime: []*api.Hook{hook}})
	return adjustment, nil, err
}

func (h handler) PostStartContainer(_ context.Context, pod *api.PodSandbox, ctr *api.Container) error {
	h.waiting.ContainerStarted(podName(pod), ctr.GetId())
	h.starts.Runtime.ContainerStarted(pod, ctr)
	return nil
}

func (h handler) StopContainer(_ context.Context, pod *api.PodSandbox, ctr *api.Container) ([]*api.ContainerUpdate, error) {
	h.waiting.ContainerGone(podName(pod), ctr.GetId())
	h.starts.Runtime.ContainerStopped(pod, ctr)
	return nil, nil
}

func (h handler) RemoveContainer(_ context.Context, pod *api.PodSandbox, ctr *api.Container) error {
	h.waiting.ContainerGone(podName(pod), ctr.GetId())
	h.starts.Runtime.ContainerRemoved(pod, ctr)
	return nil
}

func podName(pod *api.PodSandbox) string {
	return types.NamespacedName{Namespace: pod.GetNamespace(), Name: pod.GetName()}.String()
}
