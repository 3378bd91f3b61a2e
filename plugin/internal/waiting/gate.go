package waiting

import (
	"sync/atomic"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/sirupsen/logrus"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/starts"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/turns"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// GateMode says where containers may wait in the gate.
type GateMode string

// The gate modes.
const (
	// GateAuto uses the gate where it is known to do no harm.
	GateAuto GateMode = "auto"
	// GateAlways uses it on every runtime, also on one that is known to be held up
	// by it, and where the pod's restart policy is not known. A container that is
	// known not to be restarted never waits there.
	GateAlways GateMode = "always"
	// GateNever refuses instead.
	GateNever GateMode = "never"
)

// GateOptions say how the gate is used.
type GateOptions struct {
	Mode    GateMode
	Path    string        // of the hook, on the host; empty: no gate
	Socket  string        // at which hooks ask
	Timeout time.Duration // of one wait
}

// Gate is the way to wait in an OCI hook: the runtime runs it before the container's process, and
// it asks the daemon at a socket. Gate answers there, too: it is a gate.Backend. Safe for
// concurrent use.
type Gate struct {
	GateOptions
	starts   *starts.Starts
	board    *turns.Board
	observer *observe.Observer
	log      logrus.FieldLogger
	breaker  *Breaker
	runtime  *atomic.Pointer[runtime]
	shims    *shimBook
	waiters  atomic.Int64
}

func newGate(o Options, r *atomic.Pointer[runtime]) *Gate {
	return &Gate{
		GateOptions: o.Gate, starts: o.Starts, board: o.Board, observer: o.Observer, log: o.Log, breaker: o.Breaker,
		runtime: r, shims: newShimBook(o.ProcRoot, r),
	}
}

// admit returns the hook with which a container waits that is not barred; nil: its pod gets no
// reservation, and a.Decision says why.
func (g *Gate) admit(now time.Time, a *HeldContainer) *api.Hook {
	d := a.Decision
	if room := g.starts.Reserve(now, a.Ticket); !room.Admitted {
		a.Decision = room
		return nil
	}
	v, _ := g.starts.Limiter.View(now, a.UID)
	g.observer.Waits(now, observe.Wait{
		UID: a.UID, Name: a.Title(), Decision: d, Since: v.Arrived,
		Message: "waits in the gate", Fields: logrus.Fields{"container_id": a.ID},
	})
	g.breaker.begins(now, a.ID, a.UID)
	return g.hook(now, a, v)
}

// hook returns the OCI hook with which a container waits.
func (g *Gate) hook(now time.Time, a *HeldContainer, v throttle.TicketView) *api.Hook {
	return gate.Hook(g.Path, gate.Args{
		Socket: g.Socket, PodUID: a.UID, ContainerID: a.ID, Name: a.Title(),
		Since: v.Arrived, Deadline: now.Add(g.Timeout), LeaveAt: now.Add(min(turns.RestartGrace+v.Expected, g.Timeout)), Made: now,
	})
}

// Off tells why no container may wait in the gate now; empty: some may. While the breaker is
// open none may, but for the one that tries.
func (g *Gate) Off() string {
	if state, _ := g.starts.Valve.Now(); state.Shutdown {
		return "the node is being shut down"
	}
	if closed := g.closed(); closed != "" {
		return closed
	}
	return g.breaker.opened()
}

// closed is Off but for what the hooks of other containers have shown.
func (g *Gate) closed() string {
	switch {
	case g.Mode == GateNever:
		return "switched off by --gate never"
	case g.Path == "":
		return "switched off by an empty --gate-path"
	}
	if fault := HookFault(g.Path); fault != "" {
		return fault
	}
	if bars := g.runtime.Load().barsGate; g.Mode == GateAuto && bars != "" {
		return bars
	}
	if state, _ := g.starts.Valve.Now(); state.Pressure {
		return pressureBars
	}
	return ""
}

// pressureBars is why no container waits in the gate while kubelet reports that the node is
// short of memory, disk or process IDs. kubelet evicts pods then, and one that waits in the
// gate it can end only when that wait is over: until it gives up on that pod, it evicts no
// other. A pod that is refused does not hold it up.
const pressureBars = "the node is short of memory, disk or process IDs, and kubelet cannot evict a pod that waits in the gate"

// barred tells why this container may not wait in the gate; empty: it may.
func (g *Gate) barred(now time.Time, a *HeldContainer) string {
	if closed := g.closed(); closed != "" {
		return closed
	}
	if bars := g.breaker.bars(now, a.UID); bars != "" {
		return bars
	}
	switch bars := g.shims.barred(a.Sandbox); {
	case g.Mode == GateAuto && bars != "":
		return bars
	case bars != "" && a.Beside:
		return "a hook that waits would hold up the containers of the pod that run"
	}
	return g.lost(a)
}

// lost tells why the container would be lost if the runtime were restarted while it waits;
// empty: it would not.
func (g *Gate) lost(a *HeldContainer) string {
	if a.Kubelet.StartsAgain(a.Container) || (!a.Known && g.Mode == GateAlways) {
		return ""
	}
	return "kubelet would not start the container again if it were lost while it waits"
}
