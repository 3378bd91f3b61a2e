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

// Options configure a Chooser. All fields are required unless they say otherwise.
type Options struct {
	Starts   *starts.Starts
	Pods     starts.Source // nil: standalone
	Observer *observe.Observer
	Board    *turns.Board
	Log      logrus.FieldLogger

	Gate     GateOptions
	RefuseAt RefuseAt
	// Hold is the longest wait inside one handler. Zero: handlers do not wait.
	Hold time.Duration
	// BreakerPause is for how long the gate is closed after hooks failed for the first time. Zero: 1 minute.
	BreakerPause time.Duration
	// SavedHold is the longest wait of all handlers together after a quiet time. Zero: 2 s.
	SavedHold time.Duration
	Cores     int    // of the node
	ProcRoot  string // where the host's /proc is
}

// shared is what all ways of waiting use.
type shared struct {
	Options
	runtime atomic.Pointer[runtime]
}

// heldContainer is a container that may not start now, because a limit holds its pod.
type heldContainer struct {
	starts.ContainerStart
	decision throttle.Decision
	sandbox  *api.PodSandbox
	id       string       // of the container
	kubelet  podwatch.Pod // what the pod watch knows of the pod
	known    bool         // the pod watch knows the pod
}

// Chooser decides how pods wait. It also answers the processes that wait in the gate and in the waiting
// room: it is a [gate.Backend]. Make it with New. Its methods are safe for concurrent use.
type Chooser struct {
	*shared
	Gate     *Gate
	Room     *Room
	Refusals *Refusals
	hold     *hold
}

// New returns a Chooser that is not connected to a runtime yet.
func New(o Options) *Chooser {
	s := &shared{Options: o}
	s.runtime.Store(notConnected)
	g := newGate(s)
	return &Chooser{shared: s, Gate: g, Room: newRoom(s, g), Refusals: newRefusals(s), hold: newHold(s)}
}

// Sandbox decides whether a pod may have its sandbox, in which it waits for the rest of its turn. An error
// refuses the sandbox. It may block for as long as a hold.
func (c *Chooser) Sandbox(ctx context.Context, sandbox *api.PodSandbox) error {
	ctx, cancel := context.WithTimeout(ctx, c.hold.longest())
	defer cancel()
	pod, known := c.identify(ctx, sandbox)
	now := time.Now()
	p, d := c.Starts.Runtime.Sandbox(now, sandbox, pod, known, c.Refusals.atSandbox(now))
	if !d.Admitted {
		return c.Refusals.refuse(p, "", d)
	}
	c.Gate.shims.add(sandbox) // last: it reads files of the shim's process, which may hang
	return nil
}

// Container decides whether a container's process may start. It returns the hook in which the container
// waits, or nil if it may start. An error refuses the container. It may block for as long as a hold.
func (c *Chooser) Container(ctx context.Context, sandbox *api.PodSandbox, ctr *api.Container) (*api.Hook, error) {
	ctx, cancel := context.WithTimeout(ctx, c.hold.longest())
	defer cancel()
	pod, known := c.identify(ctx, sandbox)
	now := time.Now()
	held := &heldContainer{
		ContainerStart: c.Starts.Runtime.Container(now, sandbox, ctr, pod, known), sandbox: sandbox, id: ctr.GetId(), kubelet: pod, known: known,
	}
	switch {
	case held.Kind == starts.Continues:
		return nil, nil
	case held.Kind == starts.Never:
		_, reason := held.Ticket.Status()
		return nil, c.Refusals.refuse(held.Pod, held.id, starts.Barred(reason))
	case held.Kind == starts.AtOnce, held.Exempt != "":
		held.Ticket.StartExempt(now)
		return nil, nil
	case c.Starts.Valve.ShutsOut():
		return nil, c.Refusals.refuse(held.Pod, held.id, starts.Barred(gate.NodeShutdown))
	}
	held.decision = held.Ticket.TryStart(now)
	switch {
	case held.decision.Admitted:
		return nil, nil
	case !c.Starts.Valve.Holds():
		c.Starts.GoOn(now, held.Ticket, held.decision.Reason)
		return nil, nil
	}
	return c.chooseWay(ctx, held)
}

// chooseWay makes a container wait in the first way that is open to it.
func (c *Chooser) chooseWay(ctx context.Context, held *heldContainer) (hook *api.Hook, err error) {
	now := time.Now()
	if c.Gate.barred(now, held) == "" {
		if hook := c.Gate.admit(now, held); hook != nil {
			return hook, nil
		}
	} else if c.hold.maySuffice(held.decision) && c.hold.admits(ctx, held) {
		return nil, nil
	}
	return nil, c.Refusals.refuse(held.Pod, held.id, held.decision)
}

// identify returns what the pod watch knows of a pod. If the watch does not know the pod yet, and the pod
// would have to wait, it holds the handler so that the watch can catch up.
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

// Connected is called when the daemon is connected to a runtime. It returns log fields that say for what
// the runtime cannot be used.
func (c *Chooser) Connected(name, version string, requestTimeout time.Duration) logrus.Fields {
	barsGate, barsSandbox := RuntimeFaults(name, version)
	c.runtime.Store(&runtime{barsGate: barsGate, barsSandbox: barsSandbox, timeout: requestTimeout})
	c.Gate.breaker.connected()
	fields := logrus.Fields{}
	if why := c.Gate.Off(); why != "" {
		fields["no_gate"] = why
	}
	if why := c.Refusals.NotAtSandbox(); why != "" {
		fields["no_refusal_at_sandbox"] = why
	}
	return fields
}

// Took charges the time that a handler took to the budget for holds.
func (c *Chooser) Took(now time.Time, took time.Duration) { c.hold.charge(now, took) }

// SandboxRemoved forgets a sandbox that was removed.
func (c *Chooser) SandboxRemoved(id string) { c.Gate.shims.remove(id) }

// Forget forgets a pod that is gone.
func (c *Chooser) Forget(uid string) { c.Gate.breaker.forget(uid) }

// SandboxesAre forgets all sandboxes but these.
func (c *Chooser) SandboxesAre(sandboxes []*api.PodSandbox) { c.Gate.shims.keep(sandboxes) }
