package nri

import (
	"context"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/sirupsen/logrus"
)

// Handler answers the runtime. Its methods are called from many goroutines at once, and
// must be quick: the runtime holds two global locks through each of the calls that name a pod.
type Handler interface {
	// Connected is called with the runtime's name and version, and the time after which it gives up a request. The
	// fields that it returns are logged with the connection.
	Connected(runtime, version string, requestTimeout time.Duration) logrus.Fields
	// Lost is called when a connection that was in use is gone, Back when one is in use again after that.
	Lost(why error)
	Back()
	// Took is called after each call of a handler, with the time that it took.
	Took(now time.Time, handler string, took time.Duration)
	// Panicked is called for a panic that was caught, also in the stub; the pod, which may be nil, goes on.
	Panicked(part string, fault any, pod *api.PodSandbox)

	// Synchronize is called with all pods and containers that exist, once for each connection.
	Synchronize(pods []*api.PodSandbox, ctrs []*api.Container)
	// RunPodSandbox may refuse the pod for now, by an error.
	RunPodSandbox(ctx context.Context, pod *api.PodSandbox) error
	StopPodSandbox(pod *api.PodSandbox)
	RemovePodSandbox(pod *api.PodSandbox)
	// CreateContainer may refuse the container for now, or give it a hook with which it waits.
	CreateContainer(ctx context.Context, pod *api.PodSandbox, ctr *api.Container) (*api.Hook, error)
	PostStartContainer(pod *api.PodSandbox, ctr *api.Container)
	StopContainer(pod *api.PodSandbox, ctr *api.Container)
	RemoveContainer(pod *api.PodSandbox, ctr *api.Container)
}

// plugin is what the NRI stub calls.
type plugin struct {
	handler Handler
	// configured and synchronized tell the connection how far it is.
	configured   func(runtime, version string) error
	synchronized func()
	late         *lateAnswers // nil: they are not counted
}

// Configure implements the stub's interface: it notes which runtime this is.
func (p *plugin) Configure(_ context.Context, _, runtime, version string) (api.EventMask, error) {
	err := p.guard("Configure", nil, func() error { return p.configured(runtime, version) })
	return 0, err // everything that plugin has a method for
}

// Synchronize passes on the pods and containers that exist.
func (p *plugin) Synchronize(_ context.Context, pods []*api.PodSandbox, ctrs []*api.Container) ([]*api.ContainerUpdate, error) {
	err := p.guard("Synchronize", nil, func() error { p.handler.Synchronize(pods, ctrs); return nil })
	p.synchronized()
	return nil, err
}

// RunPodSandbox may refuse the pod for now.
func (p *plugin) RunPodSandbox(ctx context.Context, pod *api.PodSandbox) error {
	return p.guard("RunPodSandbox", pod, func() error { return p.handler.RunPodSandbox(ctx, pod) })
}

// StopPodSandbox passes on that a sandbox was stopped.
func (p *plugin) StopPodSandbox(_ context.Context, pod *api.PodSandbox) error {
	return p.guard("StopPodSandbox", pod, func() error { p.handler.StopPodSandbox(pod); return nil })
}

// RemovePodSandbox passes on that a sandbox was removed.
func (p *plugin) RemovePodSandbox(_ context.Context, pod *api.PodSandbox) error {
	return p.guard("RemovePodSandbox", pod, func() error { p.handler.RemovePodSandbox(pod); return nil })
}

// CreateContainer may refuse the container for now, or give it the hook with which it waits.
func (p *plugin) CreateContainer(ctx context.Context, pod *api.PodSandbox, ctr *api.Container) (*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	var adjustment *api.ContainerAdjustment
	err := p.guard("CreateContainer", pod, func() error {
		hook, err := p.handler.CreateContainer(ctx, pod, ctr)
		if hook != nil {
			adjustment = &api.ContainerAdjustment{}
			adjustment.AddHooks(&api.Hooks{CreateRuntime: []*api.Hook{hook}})
		}
		return err
	})
	return adjustment, nil, err
}

// PostStartContainer passes on that a container runs.
func (p *plugin) PostStartContainer(_ context.Context, pod *api.PodSandbox, ctr *api.Container) error {
	return p.guard("PostStartContainer", pod, func() error { p.handler.PostStartContainer(pod, ctr); return nil })
}

// StopContainer passes on that a container has ended.
func (p *plugin) StopContainer(_ context.Context, pod *api.PodSandbox, ctr *api.Container) ([]*api.ContainerUpdate, error) {
	return nil, p.guard("StopContainer", pod, func() error { p.handler.StopContainer(pod, ctr); return nil })
}

// RemoveContainer passes on that a container was removed.
func (p *plugin) RemoveContainer(_ context.Context, pod *api.PodSandbox, ctr *api.Container) error {
	return p.guard("RemoveContainer", pod, func() error { p.handler.RemoveContainer(pod, ctr); return nil })
}

// guard measures a call, and turns a panic into a pod that goes on.
func (p *plugin) guard(name string, pod *api.PodSandbox, call func() error) (err error) {
	begin := time.Now()
	defer func() {
		now := time.Now()
		took := now.Sub(begin)
		p.handler.Took(now, name, took)
		if p.late != nil {
			p.late.took(now, took)
		}
		if fault := recover(); fault != nil {
			p.handler.Panicked(name, fault, pod)
			err = nil
		}
	}()
	return call()
}
