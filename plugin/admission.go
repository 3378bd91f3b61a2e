package plugin

import (
	"context"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// runSandbox decides at the first point: may the pod come up to wait near its
// turn. It may hold.
func (p *pacer) runSandbox(ctx context.Context, sandbox *api.PodSandbox) error {
	ctx, cancel := context.WithTimeout(ctx, p.longestHold())
	defer cancel()
	pod, known := p.identify(ctx, sandbox)
	now := time.Now()
	r, d := p.letIn(now, sandbox, pod, known)
	if !d.Admitted {
		return p.refuse(r, atSandbox, "", d)
	}
	return nil
}

// letIn decides whether a sandbox may stay, and takes note of it.
func (p *pacer) letIn(now time.Time, sandbox *api.PodSandbox, pod podwatch.Pod, known bool) (*record, throttle.Decision) {
	r, d := p.mayEnter(now, sandbox, pod, known)
	if d.Admitted {
		p.gate.sandboxes.isMade(sandbox) // after the lock: it reads files of the shim, which may hang
	}
	return r, d
}

// mayEnter decides whether a sandbox may stay, and has the pod's record tell of it.
func (p *pacer) mayEnter(now time.Time, sandbox *api.PodSandbox, pod podwatch.Pod, known bool) (*record, throttle.Decision) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.recordOfLocked(sandbox)
	if exemption(p.config.Load().Spec.Exemptions, r, pod, known) == "" {
		d := p.letUp(now, p.joinLocked(now, r, "", pod))
		if !d.Admitted && p.holds() && p.refusals.atSandbox(now, p.options.RefuseAt) {
			r.refuse(sandbox.GetId(), now)
			return r, d
		}
	}
	r.enter(sandbox.GetId())
	return r, throttle.Decision{Admitted: true}
}

// createContainer decides at the second point: may the process start. It gives
// the hook with which the container waits, or nil to go on. It may hold.
func (p *pacer) createContainer(ctx context.Context, sandbox *api.PodSandbox, ctr *api.Container) (*api.Hook, error) {
	ctx, cancel := context.WithTimeout(ctx, p.longestHold())
	defer cancel()
	pod, known := p.identify(ctx, sandbox)
	a := &asking{ctr: ctr, candidate: candidate{sandbox: sandbox, uid: podKey(sandbox), pod: pod, known: known, name: ctr.GetName()}}
	hook, err := p.decide(ctx, a)
	if hook != nil {
		p.gate.hooks.begins(time.Now(), ctr.GetId(), a.uid)
	}
	return hook, err
}

// asking is a container that asks whether it may start.
type asking struct {
	candidate
	ctr *api.Container
	r   *record
	t   *throttle.Ticket // the pod's; nil: it has none, and goes on
}

// decide lets a container start, or chooses how it waits.
func (p *pacer) decide(ctx context.Context, a *asking) (*api.Hook, error) {
	now := time.Now()
	begins, exempt := p.takeNote(now, a)
	switch {
	case begins == startGoesOn:
		return nil, nil
	case begins == startNever:
		_, reason := a.t.Status()
		return nil, p.refuse(a.r, atContainer, a.ctr.GetId(), barredFor(reason))
	case begins == startAtOnce, exempt != "":
		a.t.StartExempt(now)
		return nil, nil
	case p.shutsOut():
		return nil, p.refuse(a.r, atContainer, a.ctr.GetId(), barredFor(gate.NodeShutdown))
	}
	d := a.t.TryStart(now)
	switch {
	case d.Admitted:
		return nil, nil
	case !p.holds():
		p.goOn(now, a.r.uid, a.t, d.Reason)
		return nil, nil
	}
	return p.wait(ctx, a, d)
}

// takeNote remembers a container that is about to be made, and tells what it
// begins and why it need not wait, if so.
func (p *pacer) takeNote(now time.Time, a *asking) (begins beginning, exempt string) {
	p.mu.Lock()
	defer p.mu.Unlock() // also when it panics: the next pod needs the lock
	a.r = p.recordOfLocked(a.sandbox)
	a.r.enter(a.sandbox.GetId())
	a.r.create(a.ctr, now)
	for _, c := range a.r.containers {
		a.beside = a.beside || (c.running && c.name != a.name)
	}
	if _, again := a.r.exits[a.name]; again {
		p.endExitedLocked(now, a.r, a.pod, again)
	}
	a.t = p.limiter.Lookup(a.r.uid)
	if begins = p.beginsLocked(a.r, a.name, a.pod, a.known); begins == startGoesOn || begins == startNever {
		return begins, ""
	}
	a.t = p.joinLocked(now, a.r, a.name, a.pod)
	return begins, exemption(p.config.Load().Spec.Exemptions, a.r, a.pod, a.known)
}

// wait chooses how a container waits that may not start now: in the gate, for
// the hold, or by being refused.
func (p *pacer) wait(ctx context.Context, a *asking, d throttle.Decision) (*api.Hook, error) {
	now := time.Now()
	if p.gate.barred(a.candidate) == "" {
		if room := a.t.Reserve(now, p.options.GateTimeout); !room.Admitted {
			return nil, p.refuse(a.r, atContainer, a.ctr.GetId(), room)
		}
		p.logWait(now, a.r, d, "waits in the gate", logrus.Fields{"container_id": a.ctr.GetId()})
		return p.hook(now, a.r, a.ctr.GetId()), nil
	}
	// Nobody can wait for this container outside the handler. Where its turn is
	// next, a moment may do.
	if d.Ahead == 0 && !onlyRefused(d.Reason) {
		p.held(ctx, func(ctx context.Context) {
			a.t.Wait(now)
			defer func() { a.t.StopWaiting(time.Now()) }()
			select {
			case <-a.t.Decided():
			case <-ctx.Done():
			}
		})
		if d = a.t.TryStart(time.Now()); d.Admitted {
			return nil, nil
		}
	}
	return nil, p.refuse(a.r, atContainer, a.ctr.GetId(), d)
}

// hook gives the OCI hook with which a container waits in the gate.
func (p *pacer) hook(now time.Time, r *record, containerID string) *api.Hook {
	deadline := now.Add(p.options.GateTimeout)
	v, _ := p.limiter.View(now, r.uid)
	leave := now.Add(restartGrace + v.Expected)
	if leave.After(deadline) {
		leave = deadline
	}
	return gate.Hook(p.options.GatePath, gate.Args{
		Socket: p.options.SocketPath(), PodUID: r.uid, ContainerID: containerID, Name: r.title(),
		Since: v.Arrived, Deadline: deadline, LeaveAt: leave, Made: now,
	})
}
