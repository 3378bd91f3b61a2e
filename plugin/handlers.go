package plugin

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/sirupsen/logrus"
)

// handlers are the events and requests that the runtime sends. containerd holds
// two global locks through each of them.
type handlers struct {
	p *pacer
	// configured and synchronized tell the connection how far it is.
	configured   func(runtime, version string) error
	synchronized func()
	took         func(now time.Time, own time.Duration) // is told how long each call took; nil: nobody is
}

// Configure takes over which runtime this is.
func (h *handlers) Configure(ctx context.Context, _, runtime, version string) (api.EventMask, error) {
	err := h.guard(ctx, "Configure", nil, func(context.Context) error { return h.configured(runtime, version) })
	return 0, err // everything that handlers has a method for
}

// Synchronize rebuilds what the runtime has told from the pods and containers
// that exist.
func (h *handlers) Synchronize(ctx context.Context, pods []*api.PodSandbox, ctrs []*api.Container) ([]*api.ContainerUpdate, error) {
	err := h.guard(ctx, "Synchronize", nil, func(context.Context) error { h.p.synchronize(pods, ctrs); return nil })
	h.synchronized()
	return nil, err
}

// RunPodSandbox may refuse the pod for now.
func (h *handlers) RunPodSandbox(ctx context.Context, pod *api.PodSandbox) error {
	return h.guard(ctx, "RunPodSandbox", pod, func(ctx context.Context) error {
		err := h.p.runSandbox(ctx, pod)
		h.p.podLog(podKey(pod), pod.GetNamespace()+"/"+pod.GetName()).WithFields(logrus.Fields{
			"sandbox_id": pod.GetId(), "netns": netnsOf(pod), "refused": err != nil,
		}).Debugf("pod %s/%s: the runtime makes a sandbox", pod.GetNamespace(), pod.GetName())
		return err
	})
}

// StopPodSandbox takes note of the end of a sandbox.
func (h *handlers) StopPodSandbox(ctx context.Context, pod *api.PodSandbox) error {
	return h.guard(ctx, "StopPodSandbox", pod, func(context.Context) error { h.p.sandboxStopped(pod); return nil })
}

// RemovePodSandbox takes note of the end of a sandbox.
func (h *handlers) RemovePodSandbox(ctx context.Context, pod *api.PodSandbox) error {
	return h.guard(ctx, "RemovePodSandbox", pod, func(context.Context) error { h.p.sandboxRemoved(pod); return nil })
}

// CreateContainer may refuse the container for now, or give it the hook with
// which it waits.
func (h *handlers) CreateContainer(ctx context.Context, pod *api.PodSandbox, ctr *api.Container) (*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	var adjustment *api.ContainerAdjustment
	err := h.guard(ctx, "CreateContainer", pod, func(ctx context.Context) error {
		hook, err := h.p.createContainer(ctx, pod, ctr)
		h.p.podLog(podKey(pod), pod.GetNamespace()+"/"+pod.GetName()).WithFields(logrus.Fields{
			"sandbox_id": pod.GetId(), "container_id": ctr.GetId(), "hook": hook != nil, "refused": err != nil,
		}).Debugf("pod %s/%s: the runtime makes a container", pod.GetNamespace(), pod.GetName())
		if hook != nil {
			adjustment = &api.ContainerAdjustment{}
			adjustment.AddHooks(&api.Hooks{CreateRuntime: []*api.Hook{hook}})
		}
		return err
	})
	return adjustment, nil, err
}

// PostStartContainer takes note of a process that runs.
func (h *handlers) PostStartContainer(ctx context.Context, pod *api.PodSandbox, ctr *api.Container) error {
	return h.guard(ctx, "PostStartContainer", pod, func(context.Context) error { h.p.containerStarted(pod, ctr); return nil })
}

// StopContainer takes note of a process that ended.
func (h *handlers) StopContainer(ctx context.Context, pod *api.PodSandbox, ctr *api.Container) ([]*api.ContainerUpdate, error) {
	return nil, h.guard(ctx, "StopContainer", pod, func(context.Context) error { h.p.containerStopped(pod, ctr); return nil })
}

// RemoveContainer takes note of a container that is gone.
func (h *handlers) RemoveContainer(ctx context.Context, pod *api.PodSandbox, ctr *api.Container) error {
	return h.guard(ctx, "RemoveContainer", pod, func(context.Context) error { h.p.containerRemoved(pod, ctr); return nil })
}

// netnsOf gives the path of a sandbox's network namespace; empty: it is the host's.
func netnsOf(pod *api.PodSandbox) string {
	for _, n := range pod.GetLinux().GetNamespaces() {
		if n.GetType() == "network" {
			return n.GetPath()
		}
	}
	return ""
}

// guard measures a handler, and turns a panic into a pod that starts unpaced.
func (h *handlers) guard(ctx context.Context, name string, pod *api.PodSandbox, handle func(context.Context) error) (err error) {
	begin, held := time.Now(), new(atomic.Int64)
	defer func() {
		end := time.Now()
		took, waited := end.Sub(begin), time.Duration(held.Load())
		h.p.metrics.handlers.WithLabelValues(name).Observe(took.Seconds())
		h.p.hold.charge(end, took-waited)
		if h.took != nil {
			h.took(end, took)
		}
		if fault := recover(); fault != nil {
			if name == "RunPodSandbox" || name == "CreateContainer" {
				h.p.unpaced(podKey(pod), pod.GetNamespace()+"/"+pod.GetName(), unpacedPanic)
			}
			h.p.panicked(name, fault, logrus.Fields{"pod_namespace": pod.GetNamespace(), "pod_name": pod.GetName(), "pod_uid": pod.GetUid()})
			err = nil
		}
	}()
	return handle(context.WithValue(ctx, heldKey{}, held))
}

// heldKey is the key of the time that one call of a handler was held.
type heldKey struct{}
