package plugin

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/sirupsen/logrus"
)

// handlers are the events and requests that the runtime sends. containerd holds
// two global locks through each of them.
type handlers struct {
	p *pacer
	// configured and synchronized tell the connection how far it is.
	configured   func(runtime, version string)
	synchronized func()
}

// Configure takes over which runtime this is.
func (h *handlers) Configure(_ context.Context, _, runtime, version string) (api.EventMask, error) {
	h.configured(runtime, version)
	return 0, nil // everything that handlers has a method for
}

// Synchronize rebuilds what the runtime has told from the pods and containers
// that exist.
func (h *handlers) Synchronize(_ context.Context, pods []*api.PodSandbox, ctrs []*api.Container) ([]*api.ContainerUpdate, error) {
	err := h.guard("Synchronize", nil, func() error { h.p.synchronize(pods, ctrs); return nil })
	h.synchronized()
	return nil, err
}

// RunPodSandbox may refuse the pod for now.
func (h *handlers) RunPodSandbox(ctx context.Context, pod *api.PodSandbox) error {
	return h.guard("RunPodSandbox", pod, func() error { return h.p.runSandbox(ctx, pod) })
}

// StopPodSandbox takes note of the end of a sandbox.
func (h *handlers) StopPodSandbox(_ context.Context, pod *api.PodSandbox) error {
	return h.guard("StopPodSandbox", pod, func() error { h.p.sandboxStopped(pod); return nil })
}

// RemovePodSandbox takes note of the end of a sandbox.
func (h *handlers) RemovePodSandbox(_ context.Context, pod *api.PodSandbox) error {
	return h.guard("RemovePodSandbox", pod, func() error { h.p.sandboxRemoved(pod); return nil })
}

// CreateContainer may refuse the container for now, or give it the hook with
// which it waits.
func (h *handlers) CreateContainer(ctx context.Context, pod *api.PodSandbox, ctr *api.Container) (*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	var adjustment *api.ContainerAdjustment
	err := h.guard("CreateContainer", pod, func() error {
		hook, err := h.p.createContainer(ctx, pod, ctr)
		if hook != nil {
			adjustment = &api.ContainerAdjustment{}
			adjustment.AddHooks(&api.Hooks{CreateRuntime: []*api.Hook{hook}})
		}
		return err
	})
	return adjustment, nil, err
}

// PostStartContainer takes note of a process that runs.
func (h *handlers) PostStartContainer(_ context.Context, pod *api.PodSandbox, ctr *api.Container) error {
	return h.guard("PostStartContainer", pod, func() error { h.p.containerStarted(pod, ctr); return nil })
}

// StopContainer takes note of a process that ended.
func (h *handlers) StopContainer(_ context.Context, pod *api.PodSandbox, ctr *api.Container) ([]*api.ContainerUpdate, error) {
	return nil, h.guard("StopContainer", pod, func() error { h.p.containerStopped(pod, ctr); return nil })
}

// RemoveContainer takes note of a container that is gone.
func (h *handlers) RemoveContainer(_ context.Context, pod *api.PodSandbox, ctr *api.Container) error {
	return h.guard("RemoveContainer", pod, func() error { h.p.containerRemoved(pod, ctr); return nil })
}

// guard measures a handler, and turns a panic into a pod that starts unpaced.
func (h *handlers) guard(name string, pod *api.PodSandbox, handle func() error) (err error) {
	begin := time.Now()
	defer func() {
		h.p.metrics.handlers.WithLabelValues(name).Observe(time.Since(begin).Seconds())
		if fault := recover(); fault != nil {
			h.p.metrics.panics.WithLabelValues(name).Inc()
			h.p.metrics.unpaced.WithLabelValues("Panic").Inc()
			h.p.log.WithFields(logrus.Fields{
				"handler": name, "pod_namespace": pod.GetNamespace(), "pod_name": pod.GetName(),
				"panic": fault, "stack": string(debug.Stack()),
			}).Error("handler failed, the pod goes on unpaced")
			err = nil
		}
	}()
	return handle()
}
