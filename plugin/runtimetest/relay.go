package runtimetest

import (
	"context"
	"errors"
	"sync"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"
	"github.com/sirupsen/logrus"
)

// relayState is what containerd's NRI layer remembers of a sandbox or container:
// whether its Stop and Remove events are still due. The zero value is "not known".
type relayState int

const (
	stateRemoved relayState = iota
	stateCreated
	stateRunning
	stateStopped
)

func (s relayState) needsStop() bool   { return s == stateCreated || s == stateRunning }
func (s relayState) needsRemove() bool { return s != stateRemoved }

// relay takes the place of containerd's NRI layer. Its lock is held through every
// call to the plugins, on purpose.
type relay struct {
	runtime *Runtime
	plugins *plugins
	log     logrus.FieldLogger
	nri     *adaptation.Adaptation

	mu sync.Mutex
	// guarded by mu
	state map[string]relayState
}

func (r *relay) setLocked(id string, s relayState) {
	if s == stateRemoved {
		delete(r.state, id)
		return
	}
	r.state[id] = s
}

// runPod relays RunPodSandbox and, if it is refused, the two events that follow.
func (r *relay) runPod(ctx context.Context, p *Pod) error {
	err := func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		err := r.nri.RunPodSandbox(ctx, &adaptation.RunPodSandboxRequest{Pod: p.message()})
		r.setLocked(p.id, stateRunning)
		return err
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
	if !r.state[p.id].needsStop() {
		return
	}
	err := r.nri.StopPodSandbox(ctx, &adaptation.StopPodSandboxRequest{Pod: p.message()})
	r.setLocked(p.id, stateStopped)
	r.complain(err, "StopPodSandbox", p.id)
}

func (r *relay) removePod(ctx context.Context, p *Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.state[p.id].needsRemove() {
		return
	}
	err := r.nri.RemovePodSandbox(ctx, &adaptation.RemovePodSandboxRequest{Pod: p.message()})
	r.setLocked(p.id, stateRemoved)
	r.complain(err, "RemovePodSandbox", p.id)
}

// synchronize is called by the adaptation for a plugin that has registered.
func (r *relay) synchronize(ctx context.Context, callback adaptation.SyncCB) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	pods, containers := r.runtime.list()
	for _, c := range containers {
		switch c.State {
		case api.ContainerState_CONTAINER_CREATED:
			r.setLocked(c.Id, stateCreated)
		case api.ContainerState_CONTAINER_RUNNING:
			r.setLocked(c.Id, stateRunning)
		default:
			r.setLocked(c.Id, stateRemoved)
		}
	}
	updates, err := callback(ctx, pods, containers)
	if err != nil {
		return err
	}
	r.ignoreUpdates(updates)
	r.plugins.synchronized()
	return nil
}

// update answers a plugin's own request to update containers: processes have no
// resources to update here, so all of it fails.
func (r *relay) update(_ context.Context, updates []*api.ContainerUpdate) ([]*api.ContainerUpdate, error) {
	return updates, errors.New("this runtime cannot update containers")
}

// ignoreUpdates logs updates in a plugin's reply. containerd, too, does no more when they fail.
func (r *relay) ignoreUpdates(updates []*api.ContainerUpdate) {
	if len(updates) > 0 {
		r.log.WithField("updates", len(updates)).Warn("This runtime cannot update containers, a plugin's updates have no effect")
	}
}

// complain logs the error of an event whose errors have no other effect.
func (r *relay) complain(err error, event, id string) {
	if err != nil {
		r.log.WithError(err).WithField("id", id).Errorf("A plugin failed the %s event", event)
	}
}
