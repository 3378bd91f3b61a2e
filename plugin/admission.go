package plugin

import (
	"context"
	"time"

	"github.com/containerd/nri/pkg/api"

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
		return p.refuse(r, atSandbox, d)
	}
	return nil
}

// letIn decides whether a sandbox may stay, and takes note of it.
func (p *pacer) letIn(now time.Time, sandbox *api.PodSandbox, pod podwatch.Pod, known bool) (*record, throttle.Decision) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.recordOfLocked(sandbox)
	if exemption(p.config.Load().Spec.Exemptions, r, pod, known) == "" {
		d := p.join(now, r, pod, time.Time{}).LetUp(now, p.options.GateTimeout)
		if !d.Admitted && p.budget.allows(refusalsStopped) && p.refusals.atSandbox(now, p.options.RefuseAt) {
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
	now := time.Now()
	r, begins, exempt := p.takeNote(now, sandbox, ctr, pod, known)
	switch begins {
	case startGoesOn:
		return nil, nil
	case startBeside:
		p.join(now, r, pod, time.Time{}).StartExempt(now)
		return nil, nil
	}
	t := p.join(now, r, pod, time.Time{})
	if exempt != "" {
		t.StartExempt(now)
		return nil, nil
	}
	d := t.TryStart(now)
	if d.Admitted {
		return nil, nil
	}
	return p.wait(ctx, t, r, ctr, pod, known, d)
}

// takeNote remembers a container that is about to be made, and tells what it
// begins and why it need not wait, if so.
func (p *pacer) takeNote(now time.Time, sandbox *api.PodSandbox, ctr *api.Container, pod podwatch.Pod, known bool) (*record, beginning, string) {
	p.mu.Lock()
	defer p.mu.Unlock() // also when it panics: the next pod needs the lock
	r := p.recordOfLocked(sandbox)
	r.enter(sandbox.GetId())
	r.create(ctr, now)
	return r, p.beginsLocked(r, ctr.GetName(), pod, known), exemption(p.config.Load().Spec.Exemptions, r, pod, known)
}

// wait chooses how a container waits that may not start now: in the gate, for
// the hold, or by being refused.
func (p *pacer) wait(ctx context.Context, t *throttle.Ticket, r *record, ctr *api.Container, pod podwatch.Pod, known bool, d throttle.Decision) (*api.Hook, error) {
	now := time.Now()
	barred := p.gate.barred(pod, known, ctr.GetName())
	refusing := p.budget.allows(refusalsStopped)
	if barred == "" {
		if room := t.LetUp(now, p.options.GateTimeout); !room.Admitted && refusing {
			return nil, p.refuse(r, atContainer, room)
		}
		return p.hook(now, r, ctr.GetId()), nil
	}
	// Nobody can wait for this container outside the handler. Where its turn is
	// next, a moment may do.
	if d.Ahead == 0 {
		p.held(ctx, func(ctx context.Context) {
			t.Attend(now)
			defer func() { t.Leave(time.Now()) }()
			select {
			case <-t.Decided():
			case <-ctx.Done():
			}
		})
		if d = t.TryStart(time.Now()); d.Admitted {
			return nil, nil
		}
	}
	if !refusing {
		p.metrics.unpaced.WithLabelValues("HandlerBudget").Inc()
		p.podLog(r.uid, r.title()).Warn("starts unpaced: nothing is refused while the handlers are too slow for the runtime")
		t.StartExempt(time.Now())
		return nil, nil
	}
	return nil, p.refuse(r, atContainer, d)
}

// hook gives the OCI hook with which a container waits in the gate.
func (p *pacer) hook(now time.Time, r *record, containerID string) *api.Hook {
	deadline := now.Add(p.options.GateTimeout)
	v, _ := p.limiter.View(now, r.uid)
	leave := now.Add(v.Expected)
	if leave.After(deadline) {
		leave = deadline
	}
	return gate.Hook(p.options.GatePath, gate.Args{
		Socket: p.options.SocketPath(), PodUID: r.uid, ContainerID: containerID, Name: r.title(),
		Since: v.Arrived, Deadline: deadline, LeaveAt: leave, Made: now,
	})
}
