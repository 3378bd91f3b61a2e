package runtimetest

import (
	"context"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"
)

func (r *relay) createContainer(ctx context.Context, p *Pod, c *api.Container) (*api.ContainerAdjustment, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	reply, err := r.nri.CreateContainer(ctx, &adaptation.CreateContainerRequest{Pod: p.message(), Container: c})
	r.setLocked(c.Id, stateCreated)
	if err != nil {
		return nil, err
	}
	r.ignoreUpdates(reply.Update)
	return reply.Adjust, nil
}

func (r *relay) postCreateContainer(ctx context.Context, p *Pod, c *api.Container) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.nri.PostCreateContainer(ctx, &adaptation.PostCreateContainerRequest{Pod: p.message(), Container: c})
	r.complain(err, "PostCreateContainer", c.Id)
}

func (r *relay) startContainer(ctx context.Context, p *Pod, c *api.Container) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.nri.StartContainer(ctx, &adaptation.StartContainerRequest{Pod: p.message(), Container: c})
	r.setLocked(c.Id, stateRunning)
	return err
}

func (r *relay) postStartContainer(ctx context.Context, p *Pod, c *api.Container) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.nri.PostStartContainer(ctx, &adaptation.PostStartContainerRequest{Pod: p.message(), Container: c})
	r.complain(err, "PostStartContainer", c.Id)
}

func (r *relay) stopContainer(ctx context.Context, p *Pod, c *api.Container) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopContainerLocked(ctx, p, c)
}

func (r *relay) stopContainerLocked(ctx context.Context, p *Pod, c *api.Container) {
	if !r.state[c.Id].needsStop() {
		return
	}
	reply, err := r.nri.StopContainer(ctx, &adaptation.StopContainerRequest{Pod: p.message(), Container: c})
	r.setLocked(c.Id, stateStopped)
	r.complain(err, "StopContainer", c.Id)
	r.ignoreUpdates(reply.GetUpdate())
}

func (r *relay) removeContainer(ctx context.Context, p *Pod, c *api.Container) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.state[c.Id].needsRemove() {
		return
	}
	r.stopContainerLocked(ctx, p, c)
	err := r.nri.RemoveContainer(ctx, &adaptation.RemoveContainerRequest{Pod: p.message(), Container: c})
	r.setLocked(c.Id, stateRemoved)
	r.complain(err, "RemoveContainer", c.Id)
}

// notifyExit sends the StopContainer event of a container whose process has ended,
// without waiting for it.
func (r *relay) notifyExit(p *Pod, c *api.Container) {
	c.State = api.ContainerState_CONTAINER_STOPPED
	r.runtime.tasks.Go(func() { r.stopContainer(context.Background(), p, c) })
}
