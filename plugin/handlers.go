package plugin

import (
	"context"
	"fmt"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/nri"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/pods"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/starts"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
)

// handler sends what the runtime tells and asks to the rooms. It decides nothing.
type handler struct {
	starts   *starts.Starts
	waiting  *waiting.Chooser
	observer *observe.Observer
}

var _ nri.Handler = handler{}

// Connected implements nri.Handler.
func (h handler) Connected(runtime, version string, requestTimeout time.Duration) logrus.Fields {
	return h.waiting.Connected(runtime, version, requestTimeout)
}

// Lost implements nri.Handler.
func (h handler) Lost(why error) {
	h.observer.Node(corev1.EventTypeWarning, "RuntimeDisconnected",
		fmt.Sprintf("The connection to the container runtime is lost, pods start unpaced until it is back: %v", why))
}

// Back implements nri.Handler.
func (h handler) Back() {
	h.observer.Node(corev1.EventTypeNormal, "RuntimeConnected", "Connected to the container runtime again: pods are paced")
}

// Took implements nri.Handler.
func (h handler) Took(now time.Time, name string, took time.Duration) {
	h.observer.Handler(name, took)
	h.waiting.Took(now, took)
}

// Panicked implements nri.Handler.
func (h handler) Panicked(part string, fault any, pod *api.PodSandbox) {
	fields := logrus.Fields{}
	if pod != nil {
		fields = logrus.Fields{"pod_namespace": pod.GetNamespace(), "pod_name": pod.GetName(), "pod_uid": pod.GetUid()}
	}
	if part == "RunPodSandbox" || part == "CreateContainer" {
		h.observer.Unpaced(pods.Key(pod), podName(pod), observe.Panic)
	}
	h.observer.Panicked(part, fault, fields)
}

// Synchronize implements nri.Handler.
func (h handler) Synchronize(sandboxes []*api.PodSandbox, ctrs []*api.Container) {
	h.waiting.SandboxesAre(sandboxes)
	h.starts.Runtime.Synchronize(sandboxes, ctrs)
}

// RunPodSandbox implements nri.Handler.
func (h handler) RunPodSandbox(ctx context.Context, pod *api.PodSandbox) error {
	err := h.waiting.Sandbox(ctx, pod)
	h.observer.PodLog(pods.Key(pod), podName(pod)).WithFields(logrus.Fields{
		"sandbox_id": pod.GetId(), "refused": err != nil,
	}).Debugf("pod %s: the runtime makes a sandbox", podName(pod))
	return err
}

// StopPodSandbox implements nri.Handler.
func (h handler) StopPodSandbox(pod *api.PodSandbox) { h.starts.Runtime.SandboxStopped(pod) }

// RemovePodSandbox implements nri.Handler.
func (h handler) RemovePodSandbox(pod *api.PodSandbox) {
	h.starts.Runtime.SandboxRemoved(pod)
	h.waiting.SandboxRemoved(pod.GetId())
}

// CreateContainer implements nri.Handler.
func (h handler) CreateContainer(ctx context.Context, pod *api.PodSandbox, ctr *api.Container) (*api.Hook, error) {
	hook, err := h.waiting.Container(ctx, pod, ctr)
	h.observer.PodLog(pods.Key(pod), podName(pod)).WithFields(logrus.Fields{
		"sandbox_id": pod.GetId(), "container_id": ctr.GetId(), "hook": hook != nil, "refused": err != nil,
	}).Debugf("pod %s: the runtime makes a container", podName(pod))
	return hook, err
}

// PostStartContainer implements nri.Handler.
func (h handler) PostStartContainer(pod *api.PodSandbox, ctr *api.Container) {
	h.waiting.Gate.ContainerStarted(ctr.GetId())
	h.starts.Runtime.ContainerStarted(pod, ctr)
}

// StopContainer implements nri.Handler.
func (h handler) StopContainer(pod *api.PodSandbox, ctr *api.Container) {
	h.waiting.Gate.ContainerGone(ctr.GetId())
	h.starts.Runtime.ContainerStopped(pod, ctr)
}

// RemoveContainer implements nri.Handler.
func (h handler) RemoveContainer(pod *api.PodSandbox, ctr *api.Container) {
	h.waiting.Gate.ContainerGone(ctr.GetId())
	h.starts.Runtime.ContainerRemoved(pod, ctr)
}

func podName(pod *api.PodSandbox) string { return pod.GetNamespace() + "/" + pod.GetName() }
