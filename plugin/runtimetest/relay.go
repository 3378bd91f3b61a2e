package runtimetest

import (
	"context"
	"errors"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"
)

// owed says which events of a sandbox or container are still due. The zero value is none, for an unknown one.
type owed int

const (
	removeOnly owed = iota + 1
	stopAndRemove
)

// relay takes the place of containerd's NRI layer. It holds its lock through every call to the plugins, on purpose.
type relay struct {
	runtime *Runtime
	plugins *plugins
	nri     nri

	mu lock
	// guarded by mu
	owes map[string]owed
}

// stopLocked sends a Stop event if it is due.
func (r *relay) stopLocked(id string, send func() error) {
	if r.owes[id] == stopAndRemove {
		r.complain(send(), "stop", id)
		r.owes[id] = removeOnly
	}
}

// removeLocked sends a Remove event if it is due.
func (r *relay) removeLocked(id string, send func() error) {
	if r.owes[id] != 0 {
		r.complain(send(), "remove", id)
		delete(r.owes, id)
	}
}

// complain logs the error of an event. The error has no other effect.
func (r *relay) complain(err error, event, id string) {
	if err != nil {
		r.runtime.log.WithError(err).WithField("id", id).Errorf("A plugin failed a %s event", event)
	}
}

// runPod relays RunPodSandbox and, if it is refused, the two events that follow.
func (r *relay) runPod(ctx context.Context, p *Pod) error {
	err := func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		defer func() { r.owes[p.id] = stopAndRemove }()
		return r.nri.RunPodSandbox(ctx, &adaptation.RunPodSandboxRequest{Pod: p.message()})
	}()
	if err != nil {
		r.stopPod(ctx, p)
		r.removePod(ctx, p)
	}
	return err
}

func (r *relay) stopPod(ctx context.Context, p *Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopLocked(p.id, func() error {
		return r.nri.StopPodSandbox(ctx, &adaptation.StopPodSandboxRequest{Pod: p.message()})
	})
}

func (r *relay) removePod(ctx context.Context, p *Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.removeLocked(p.id, func() error {
		return r.nri.RemovePodSandbox(ctx, &adaptation.RemovePodSandboxRequest{Pod: p.message()})
	})
}

func (r *relay) createContainer(ctx context.Context, c *Container) (*api.ContainerAdjustment, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.owes[c.id] = stopAndRemove }()
	reply, err := r.nri.CreateContainer(ctx, &adaptation.CreateContainerRequest{Pod: c.pod.message(), Container: c.message()})
	if err != nil {
		return nil, err
	}
	return reply.GetAdjust(), noUpdates(reply.GetUpdate())
}

func (r *relay) postStartContainer(ctx context.Context, c *Container) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.complain(r.nri.PostStartContainer(ctx, &adaptation.PostStartContainerRequest{Pod: c.pod.message(), Container: c.message()}), "start", c.id)
}

func (r *relay) stopContainer(ctx context.Context, p *Pod, c *api.Container) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopContainerLocked(ctx, p, c)
}

func (r *relay) stopContainerLocked(ctx context.Context, p *Pod, c *api.Container) {
	r.stopLocked(c.Id, func() error {
		reply, err := r.nri.StopContainer(ctx, &adaptation.StopContainerRequest{Pod: p.message(), Container: c})
		return errors.Join(err, noUpdates(reply.GetUpdate()))
	})
}

func (r *relay) removeContainer(ctx context.Context, c *Container) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopContainerLocked(ctx, c.pod, c.message())
	r.removeLocked(c.id, func() error {
		return r.nri.RemoveContainer(ctx, &adaptation.RemoveContainerRequest{Pod: c.pod.message(), Container: c.message()})
	})
}

// synchronize is called by the adaptation for a registered plugin.
func (r *relay) synchronize(ctx context.Context, callback adaptation.SyncCB) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	pods, containers := r.runtime.list()
	for _, c := range containers {
		r.owes[c.Id] = stopAndRemove
	}
	updates, err := callback(ctx, pods, containers)
	if err == nil {
		err = noUpdates(updates)
	}
	if err == nil {
		r.plugins.synchronized()
	}
	return err
}

// newRelay returns a relay without an adaptation.
func newRelay(r *Runtime, p *plugins) *relay {
	return &relay{runtime: r, plugins: p, mu: newLock(), owes: make(map[string]owed)}
}

// update answers a plugin's own request to update containers.
func (r *relay) update(_ context.Context, updates []*api.ContainerUpdate) ([]*api.ContainerUpdate, error) {
	return updates, noUpdates(updates)
}

// noUpdates returns an error if a plugin updates containers, because processes have no resources to update.
func noUpdates(updates []*api.ContainerUpdate) error {
	if len(updates) > 0 {
		return errors.New("this runtime cannot update containers")
	}
	return nil
}
