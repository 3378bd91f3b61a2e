package waiting

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/pods"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/starts"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/turns"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// Options say what a Chooser works with. All are needed but those that say so.
type Options struct {
	Starts   *starts.Starts
	Breaker  *Breaker
	Pods     starts.Source // nil: standalone
	Observer *observe.Observer
	Board    *turns.Board
	Log      logrus.FieldLogger

	Gate GateOptions
	// RefuseAt says where pods are refused.
	RefuseAt RefuseAt
	// Hold bounds one wait inside a handler. Zero: none.
	Hold time.Duration
	// SavedHold is for how long handlers can wait together after a quiet time. Zero: 2 s.
	SavedHold time.Duration
	Cores     int    // of the node
	ProcRoot  string // where the host's /proc is
}

// HeldContainer is a container that may not start now, because a limit holds it.
type HeldContainer struct {
	starts.ContainerStart
	Decision throttle.Decision
	Sandbox  *api.PodSandbox
	ID       string       // of the container
	Kubelet  podwatch.Pod // what kubelet says of the pod
	Known    bool         // kubelet has said it
}

// Chooser answers at both points. Make it with New. Its methods are safe for concurrent use.
type Chooser struct {
	Options
	Gate     *Gate
	Room     *Room
	Refusals *Refusals
	hold     *hold
	runtime  atomic.Pointer[runtime]
}

// New returns a Chooser that has seen no runtime yet.
func New(o Options) *Chooser {
	c := &Chooser{Options: o}
	c.runtime.Store(notConnected)
	c.Gate, c.Refusals, c.hold = newGate(o, &c.runtime), newRefusals(o, &c.runtime), newHold(o, &c.runtime)
	c.Room = newRoom(o, c.Gate)
	return c
}

// Sandbox decides at the first point: may the pod come up to wait near its turn. An error refuses
// it. It may hold.
func (c *Chooser) Sandbox(ctx context.Context, sandbox *api.PodSandbox) error {
	ctx, cancel := context.WithTimeout(ctx, c.hold.longest())
	defer cancel()
	pod, known := c.identify(ctx, sandbox)
	now := time.Now()
	p, d := c.Starts.Runtime.Sandbox(now, sandbox, pod, known, c.Refusals.atSandbox(now))
	if !d.Admitted {
		return c.Refusals.refuse(p, "", d)
	}
	c.Gate.shims.isMade(sandbox) // last: it reads files of the shim, which may hang
	return nil
}

// Container decides at the second point: may the process start. It gives the hook with which the
// container waits, or nil to go on; an error refuses it. It may hold.
func (c *Chooser) Container(ctx context.Context, sandbox *api.PodSandbox, ctr *api.Container) (*api.Hook, error) {
	ctx, cancel := context.WithTimeout(ctx, c.hold.longest())
	defer cancel()
	pod, known := c.identify(ctx, sandbox)
	now := time.Now()
	a := &HeldContainer{
		ContainerStart: c.Starts.Runtime.Container(now, sandbox, ctr, pod, known), Sandbox: sandbox, ID: ctr.GetId(), Kubelet: pod, Known: known,
	}
	switch {
	case a.Kind == starts.Continues:
		return nil, nil
	case a.Kind == starts.Never:
		_, reason := a.Ticket.Status()
		return nil, c.Refusals.refuse(a.Pod, a.ID, starts.Barred(reason))
	case a.Kind == starts.AtOnce, a.Exempt != "":
		a.Ticket.StartExempt(now)
		return nil, nil
	case c.Starts.Valve.ShutsOut():
		return nil, c.Refusals.refuse(a.Pod, a.ID, starts.Barred(gate.NodeShutdown))
	}
	a.Decision = a.Ticket.TryStart(now)
	switch {
	case a.Decision.Admitted:
		return nil, nil
	case !c.Starts.Valve.Holds():
		c.Starts.GoOn(now, a.Ticket, a.Decision.Reason)
		return nil, nil
	}
	return c.wait(ctx, a)
}

// wait chooses how a container waits that may not start now.
func (c *Chooser) wait(ctx context.Context, a *HeldContainer) (hook *api.Hook, err error) {
	now := time.Now()
	if c.Gate.barred(now, a) == "" {
		if hook := c.Gate.admit(now, a); hook != nil {
			return hook, nil
		}
	} else if c.hold.maySuffice(a.Decision) && c.hold.admits(ctx, a) {
		return nil, nil
	}
	return nil, c.Refusals.refuse(a.Pod, a.ID, a.Decision)
}

// identify returns what the pod watch knows of a pod. For one that it does not
// know yet, and that would have to wait, it waits for the hold at most, so that
// the watch can catch up.
func (c *Chooser) identify(ctx context.Context, sandbox *api.PodSandbox) (pod podwatch.Pod, known bool) {
	if c.Pods == nil {
		return podwatch.Pod{}, false
	}
	uid := pods.Key(sandbox)
	if pod, known = c.Pods.Get(uid); known || !c.Pods.Healthy() || !c.Starts.Valve.Holds() || c.Starts.Exemption(sandbox) != "" {
		return pod, known
	}
	c.hold.wait(ctx, func(ctx context.Context) { pod, known = c.Pods.Await(ctx, uid) })
	return pod, known
}

// Connected judges the runtime that the daemon is connected to, and gives for the log what it
// cannot be used for.
func (c *Chooser) Connected(name, version string, requestTimeout time.Duration) logrus.Fields {
	barsGate, barsSandbox := RuntimeFaults(name, version)
	c.runtime.Store(&runtime{barsGate: barsGate, barsSandbox: barsSandbox, timeout: requestTimeout})
	c.Breaker.connected()
	fields := logrus.Fields{}
	if why := c.Gate.Off(); why != "" {
		fields["no_gate"] = why
	}
	if why := c.Refusals.NotAtSandbox(); why != "" {
		fields["no_refusal_at_sandbox"] = why
	}
	return fields
}

// Took charges the time that a handler took to the budget for holding.
func (c *Chooser) Took(now time.Time, took time.Duration) { c.hold.charge(now, took) }

// SandboxRemoved takes note of a sandbox that is gone.
func (c *Chooser) SandboxRemoved(id string) { c.Gate.shims.removed(id) }

// SandboxesAre takes note of all sandboxes that exist.
func (c *Chooser) SandboxesAre(sandboxes []*api.PodSandbox) { c.Gate.shims.exist(sandboxes) }
