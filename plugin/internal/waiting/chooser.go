package waiting

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/starts"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
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

// heldContainer is a container that may not start now, because a limit holds its pod.
type heldContainer struct {
	starts.ContainerStart
	sandbox *api.PodSandbox
	made    observe.Made // the container
	cgroup  string       // of the container, see cgroupOf
	kubelet podwatch.Pod // what the pod watch knows of the pod
	known   bool         // the pod watch knows the pod
}

// refusal returns what a refusal means for the container. If kubelet has a container of this name in its records, it
// counts the refusal as a crash of that one. One that exited in this sandbox is a restart: it does not come before first
// starts.
func (h *heldContainer) refusal() throttle.Refusal {
	if h.kubelet.Containers[h.Container].ID != "" && !h.Again {
		return throttle.RetriedLate
	}
	return throttle.RetriedSoon
}

// way is a way in which a container waits. Methods are safe for concurrent use.
type way interface {
	// bars returns why the container cannot wait in this way now, or "" if it can. It may read the files of the host.
	bars(now time.Time, held *heldContainer) string
	// take makes the container wait, and returns the hook in which it waits. If it returns an error, the container
	// is refused; if it returns neither a hook nor an error, the container starts. It may return neither only if the
	// ticket is admitted, or the start counts as unpaced. A limit of a StartPolicy's running pods may hold the ticket for
	// hours: no way may start the container before. If take itself fails, the container must start. It may block for as
	// long as a hold.
	take(ctx context.Context, now time.Time, held *heldContainer) (*api.Hook, error)
}

// follower is a way that follows what becomes of its containers. Its methods are called for all containers and pods,
// also for those that it did not take. They do not block, and are safe for concurrent use.
type follower interface {
	// connected is called when the daemon is connected to a runtime.
	connected()
	// started is called when a container started, gone when one ended or was never started. pod is "namespace/name", id
	// the ID of the container.
	started(pod, id string)
	gone(pod, id string)
	// forget is called for the UID of a pod that is gone.
	forget(uid string)
}

// host answers the processes that wait in one way.
type host interface {
	// hosts reports whether the process waits in this way. It does not block.
	hosts(h gate.Hello) bool
	// wait is [gate.Backend.Wait] for the process. A verdict without Go fails the start: if podwatch.Pod.StartsAgain is
	// false for a container, that loses the container or the pod. An error of take does no harm to any pod.
	wait(ctx context.Context, h gate.Hello, sendForecast gate.SendForecast) (gate.Verdict, error)
}

// Chooser decides how pods wait. It also answers the processes that wait in the gate and in the waiting
// room: it is a [gate.Backend]. Make it with New. Its methods are safe for concurrent use.
type Chooser struct {
	*shared
	Gate     *Gate
	Room     *Room
	Refusals *Refusals
	hold     *hold
	ways     []way  // the first that does not bar a container takes it
	hosts    []host // the first that hosts a process answers it; the gate hosts all
}

// New returns a Chooser that is not connected to a runtime yet.
func New(o Options) *Chooser {
	s := &shared{o: o}
	s.runtime.Store(notConnected)
	refusals := newRefusals(s)
	g, h := newGate(s, refusals), newHold(s, refusals)
	room := newRoom(s, g)
	return &Chooser{shared: s, Gate: g, Room: room, Refusals: refusals, hold: h, ways: []way{g, h, refusals}, hosts: []host{room, g}}
}

// Sandbox decides whether the runtime may make a pod's sandbox now. An error refuses the sandbox. It may block for as
// long as a hold, and while it reads files of the host.
func (c *Chooser) Sandbox(call context.Context, sandbox *api.PodSandbox) error {
	ctx, cancel := context.WithTimeout(call, c.hold.longest())
	defer cancel()
	pod, known := c.identify(ctx, sandbox)
	mayFail := c.Gate.mayFail(pod, known)
	now := time.Now()
	asked := starts.NewSandbox{
		Sandbox: sandbox, Pod: pod, Known: known, NoGate: c.runtime.Load().bars(sandbox, c.o.ProcRoot),
		Refusable: c.Refusals.atSandbox(now, mayFail), SlotFirst: !mayFail,
	}
	d, since := c.o.Starts.Sandbox(now, asked)
	if !d.Admitted && call.Err() != nil { // the runtime has given up the call, and made the sandbox
		asked.Refusable = false
		d, since = c.o.Starts.Sandbox(time.Now(), asked)
	}
	made := madeIn(sandbox, "")
	if !d.Admitted {
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
	pod, known := c.identify(ctx, sandbox)
	start := c.o.Starts.Container(time.Now(), sandbox, ctr, pod, known)
	made := madeIn(sandbox, ctr.GetId())
	if !start.Decision.Admitted {
		held := &heldContainer{ContainerStart: start, sandbox: sandbox, made: made, cgroup: cgroupOf(ctr), kubelet: pod, known: known}
		hook, err := c.makeWait(ctx, held)
		if hook != nil && call.Err() != nil { // the runtime has given up the call, and starts the container without the hook
			c.Gate.breaker.notGiven(made.Container)
			return nil, nil
		}
		if hook != nil || err != nil {
			return hook, err
		}
	}
	c.o.Observer.Report(made)
	return nil, nil
}

// makeWait makes a container wait in the first way that does not bar it. It returns what take of that way returns.
func (c *Chooser) makeWait(ctx context.Context, held *heldContainer) (*api.Hook, error) {
	now := time.Now()
	if !held.MayWait {
		return c.Refusals.take(ctx, now, held)
	}
	i := slices.IndexFunc(c.ways, func(w way) bool { return w.bars(now, held) == "" })
	return c.ways[i].take(ctx, now, held) // refusal bars nothing
}

// identify returns what the pod watch knows of a pod. If the watch does not know the pod yet, and the pod
// would have to wait, it holds the handler so that the watch can catch up.
func (c *Chooser) identify(ctx context.Context, sandbox *api.PodSandbox) (pod podwatch.Pod, known bool) {
	if c.o.Pods == nil {
		return podwatch.Pod{}, false
	}
	uid := starts.Key(sandbox)
	if pod, known = c.o.Pods.Get(uid); known || !c.o.Pods.Healthy() || !c.o.Starts.MayHold(sandbox) {
		return pod, known
	}
	c.hold.wait(ctx, func(ctx context.Context) { pod, known = c.o.Pods.Await(ctx, uid) })
	return pod, known
}

// Connected is called when the daemon is connected to a runtime. It returns log fields that say for what
// the runtime cannot be used.
func (c *Chooser) Connected(name, version string, requestTimeout time.Duration) logrus.Fields {
	barsGate, barsSandbox := RuntimeFaults(name, version)
	c.runtime.Store(&runtime{barsGate: barsGate, barsSandbox: barsSandbox, timeout: requestTimeout})
	c.follow(follower.connected)
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

// ContainerStarted records that a container of the pod started. pod is "namespace/name". It does not block.
func (c *Chooser) ContainerStarted(pod, id string) {
	c.follow(func(f follower) { f.started(pod, id) })
}

// ContainerGone records that a container of the pod ended, or was never started. It does not block.
func (c *Chooser) ContainerGone(pod, id string) { c.follow(func(f follower) { f.gone(pod, id) }) }

// Forget forgets a pod that is gone.
func (c *Chooser) Forget(uid string) { c.follow(func(f follower) { f.forget(uid) }) }

// follow calls f for each way that is a follower.
func (c *Chooser) follow(f func(follower)) {
	for _, w := range c.ways {
		if follows, ok := w.(follower); ok {
			f(follows)
		}
	}
}
