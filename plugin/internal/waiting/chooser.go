package waiting

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/starts"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
)

// Options configure a Chooser. All fields are required unless they say otherwise.
type Options struct {
	Starts   *starts.Starts
	Pods     starts.PodWatch // nil if the daemon is standalone
	Observer *observe.Observer
	// Refused, unless it is nil, is told what CPU time each refusal is estimated to take.
	Refused func(cpu time.Duration)

	Gate     GateOptions
	RefuseAt RefuseAt
	// Hold is the longest wait inside one handler. If it is zero, handlers do not wait.
	Hold time.Duration
	// BreakerPause is for how long the gate is given up after hooks failed for the first time. Zero means 1 minute.
	BreakerPause time.Duration
	// SavedHold is the longest wait of all handlers together after a quiet time. Zero means 2 s.
	SavedHold time.Duration
	Cores     int    // of the node
	ProcRoot  string // where the host's /proc is
	// NRISocket is the path of the runtime's NRI socket. Each runtime makes the file anew, so its time tells when this
	// runtime started. It is empty if the runtime starts the daemon.
	NRISocket string
}

// shared is what all ways of waiting use.
type shared struct {
	o       Options
	runtime atomic.Pointer[runtime]
}

// askedContainer is a container that the runtime is about to make, and what was decided on it.
type askedContainer struct {
	starts.ContainerStart
	made   observe.Made // the container
	cgroup string       // of the container, see cgroupOf
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
	s := &shared{o: o}
	s.runtime.Store(notConnected)
	refusals := newRefusals(s)
	g := newGate(s)
	return &Chooser{shared: s, Gate: g, Room: newRoom(s, g), Refusals: refusals, hold: newHold(s)}
}

// Sandbox decides whether the runtime may make a pod's sandbox now. An error refuses the sandbox. It may block for as
// long as a hold, and while it reads files of the host.
func (c *Chooser) Sandbox(call context.Context, sandbox *api.PodSandbox) error {
	ctx, cancel := context.WithTimeout(call, c.hold.longest())
	defer cancel()
	pod := c.identify(ctx, sandbox)
	mayFail := c.Gate.mayFail(pod)
	now := time.Now()
	asked := starts.NewSandbox{
		Sandbox: sandbox, Pod: pod, NoGate: c.runtime.Load().bars(sandbox, c.o.ProcRoot),
		Refusable: c.Refusals.atSandbox(now, mayFail), SlotFirst: !mayFail,
	}
	d, since := c.o.Starts.Sandbox(now, asked)
	if !d.Granted && call.Err() != nil { // the runtime has given up the call, and made the sandbox
		asked.Refusable = false
		d, since = c.o.Starts.Sandbox(time.Now(), asked)
	}
	made := madeIn(sandbox, "")
	if !d.Granted {
		return c.Refusals.refuse(made, d, since)
	}
	c.o.Observer.Report(made)
	return nil
}

// madeIn returns the container with this ID in the sandbox, or the sandbox itself if the ID is empty.
func madeIn(sandbox *api.PodSandbox, container string) observe.Made {
	pod := observe.Pod{UID: starts.Key(sandbox), Name: starts.NameOf(sandbox)}
	return observe.Made{Pod: pod, Sandbox: sandbox.GetId(), Container: container}
}

// Container decides whether a container's process may start. It returns the hook in which the container
// waits, or nil if it may start. An error refuses the container. It may block for as long as a hold, and while it reads
// files of the host.
func (c *Chooser) Container(call context.Context, sandbox *api.PodSandbox, ctr *api.Container) (*api.Hook, error) {
	ctx, cancel := context.WithTimeout(call, c.hold.longest())
	defer cancel()
	pod := c.identify(ctx, sandbox)
	now := time.Now()
	terms := c.Gate.terms(now, starts.Key(sandbox), ctr, pod)
	held := &askedContainer{
		ContainerStart: c.o.Starts.Container(now, sandbox, ctr, pod, terms), made: madeIn(sandbox, ctr.GetId()), cgroup: cgroupOf(ctr),
	}
	if held.MayWait && held.Gate == nil && held.NoGate == starts.Unseen && c.youngerThanRuntime(sandbox) {
		if held.NoGate = c.runtime.Load().bars(sandbox, c.o.ProcRoot); terms.Allow(held.ContainerStart) {
			held.Gate = c.o.Starts.AskGate(now, held.ContainerStart, terms)
		}
	}
	switch {
	case held.Decision.Granted:
	case held.Gate != nil && held.Gate.Decision.Granted:
		hook := c.Gate.hook(now, held)
		if call.Err() == nil {
			return hook, nil
		}
		c.Gate.breaker.notGiven(held.made.Container) // the runtime has given up the call, and starts the container without the hook
		return nil, nil
	case held.Gate != nil:
		return nil, c.Refusals.refuse(held.made, held.Gate.Decision, held.Since)
	case held.MayWait && c.hold.bars(now, held.Decision) == "":
		d := c.hold.until(ctx, held.Ticket)
		if !d.Granted {
			return nil, c.Refusals.refuse(held.made, d, held.Since)
		}
	default:
		return nil, c.Refusals.refuse(held.made, held.Decision, held.Since)
	}
	c.o.Observer.Report(held.made)
	return nil, nil
}

// identify returns what the pod watch knows of a pod. If the watch does not know the pod yet, and the pod
// would have to wait, it holds the handler so that the watch can catch up.
func (c *Chooser) identify(ctx context.Context, sandbox *api.PodSandbox) (pod podwatch.Pod) {
	uid := starts.Key(sandbox)
	if pod = c.o.Starts.Known(uid); pod.IsKnown() || c.o.Pods == nil || !c.o.Pods.Healthy() || !c.o.Starts.MayHold(sandbox) {
		return pod
	}
	c.hold.wait(ctx, func(ctx context.Context) { pod, _ = c.o.Pods.Await(ctx, uid) })
	return pod
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

// Took subtracts the time that a handler took from the time that handlers may spend on holds. It does not block.
func (c *Chooser) Took(now time.Time, took time.Duration) { c.hold.charge(now, took) }

// ContainerStarted records that a container of the pod started. pod is "namespace/name". It does not block. If the hook of
// the container has not contacted the gate, hooks may not work.
func (c *Chooser) ContainerStarted(pod, id string) { c.Gate.watch(pod, id, causeSilent) }

// ContainerGone records that a container of the pod ended, or was never started. It does not block.
func (c *Chooser) ContainerGone(pod, id string) { c.Gate.watch(pod, id, causeLost) }

// Forget forgets a pod that is gone.
func (c *Chooser) Forget(uid string) { c.Gate.breaker.forget(uid) }
