package waiting

import (
	"cmp"
	"errors"
	"sync/atomic"
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/starts"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
)

// GateUse says where containers may wait in the gate.
type GateUse string

// The uses of the gate.
const (
	// GateAuto uses the gate where it is known to do no harm.
	GateAuto GateUse = "auto"
	// GateAlways uses the gate on every runtime, also on one that waiting hooks are
	// known to hold up, and for pods whose restart policy is not known. A container
	// that is known not to be restarted never waits in the gate.
	GateAlways GateUse = "always"
	// GateNever refuses containers instead.
	GateNever GateUse = "never"
)

// GateOptions configure the gate.
type GateOptions struct {
	Use      GateUse
	Path     string        // of the hook, on the host; empty if there is no gate
	Programs string        // the folder of this version's programs, among them the hook; empty if Install installs none
	Socket   string        // where hooks ask
	Timeout  time.Duration // of one wait
}

// Gate is the way to wait in an OCI hook: the runtime runs the hook before the container's process, and
// the hook asks the daemon at a socket. It is safe for concurrent use.
type Gate struct {
	*shared
	breaker *breaker
	waiters atomic.Int64
	expired atomic.Uint64         // waits that ended without a turn
	missing atomic.Pointer[error] // why no hook of this version is known to be installed; nil if one is, or Install installs none
	size    int64                 // of the hook when it was installed; 0 if it was not. Only Install uses it
}

func newGate(s *shared) *Gate {
	g := &Gate{shared: s, breaker: newBreaker(s.o.BreakerPause)}
	if s.o.Gate.Programs != "" {
		g.missing.Store(&errInstalling)
	}
	return g
}

// hook returns the hook in which a container waits that has a place in the gate. It reports the wait, and makes the breaker
// watch the hook.
func (g *Gate) hook(now time.Time, held *askedContainer) *api.Hook {
	timeout := g.o.Gate.Timeout
	g.o.Observer.Report(observe.Waits{Made: held.made, Decision: held.Decision, Since: held.Since, At: now})
	g.breaker.begins(now, held.made.Container, hooked{held.UID, held.Namespace})
	argv := wire.Argv(g.o.Gate.Socket, wire.Hello{
		PodUID: held.UID, ContainerID: held.made.Container, Name: held.made.Name, Since: held.Arrived, Deadline: now.Add(timeout),
	}, wire.Answer{Kind: wire.Forecast, LeaveAt: now.Add(min(starts.RestartGrace+held.Gate.WaitLeft, timeout))}, held.cgroup)
	// The hook has no timeout: when a hook times out, the runtime lets the start fail.
	return &api.Hook{Path: g.o.Gate.Path, Args: append([]string{g.o.Gate.Path}, argv...)}
}

// Waiters returns how many hooks wait in the gate now.
func (g *Gate) Waiters() int { return int(g.waiters.Load()) }

// Expired returns how many waits ended without a turn.
func (g *Gate) Expired() uint64 { return g.expired.Load() }

// Off returns why no container may wait in the gate now, or "" if some may. It reads files of the host. After hooks
// have failed it returns why, although one container at a time may try the gate again.
func (g *Gate) Off() string { return cmp.Or(g.off(), g.breaker.tripped()) }

// off returns why no container may wait in the gate now, or "" if only the breaker may forbid it.
func (g *Gate) off() string {
	state := g.o.Starts.Ends()
	why := g.unusable()
	switch {
	case state.Shutdown:
		return "the node is being shut down"
	case why == "" && state.Pressure:
		return pressureBars
	default:
		return why
	}
}

// unusable returns why the gate cannot be used on this host with this runtime, or "" if it can. It reads files of the host.
func (g *Gate) unusable() string {
	missing, bars := g.missing.Load(), g.runtime.Load().barsGate
	barred := bars != "" && g.o.Gate.Use == GateAuto
	switch {
	case g.o.Gate.Use == GateNever:
		return "switched off by --gate never"
	case g.o.Gate.Path == "":
		return "switched off by an empty --gate-path"
	case missing != nil && !(barred && errors.Is(*missing, errInstalling)): // that passes, and what bars the gate does not
		return (*missing).Error()
	case barred:
		return bars
	default:
		return HookFault(g.o.Gate.Path)
	}
}

// pressureBars is why no container waits in the gate while kubelet reports that the node is short of
// memory, disk or process IDs. kubelet then evicts pods, and it cannot end a pod that waits in the gate
// before that wait is over. Until it gives up on that pod, it evicts no other. A refused pod does not
// hold it up.
const pressureBars = "the node is short of memory, disk or process IDs, and kubelet cannot evict a pod that waits in the gate"

// terms returns whether a hook may wait for a container. It may not for one that kubelet would not start again if its hook
// failed, because the daemon ends the wait or the runtime is restarted. It reads files of the host.
func (g *Gate) terms(now time.Time, uid string, ctr *api.Container, pod podwatch.Pod) (h starts.HookTerms) {
	line := wire.AppendHello(nil, wire.Hello{PodUID: uid, ContainerID: ctr.GetId()})
	_, unnamed := wire.ParseHello(string(line[:len(line)-1])) // the hook would start the container without a decision, and look broken
	lost := !pod.StartsAgain(ctr.GetName()) && (pod.IsKnown() || g.o.Gate.Use != GateAlways)
	return starts.HookTerms{
		May: unnamed == nil && !lost && g.unusable() == "" && g.breaker.bars(now, uid) == "", AnyShim: g.o.Gate.Use != GateAuto,
		Recorded: pod.Containers[ctr.GetName()].ID != "",
	}
}

// mayFail reports whether kubelet, and the controller of the pod, try again if any container of the pod fails. If the
// pod is not known, only the use GateAlways says so. The containers of a pod that is too large to be known in full are not
// known, and none of them waits in the gate.
func (g *Gate) mayFail(pod podwatch.Pod) bool {
	if len(pod.Containers) == 0 {
		return !pod.IsKnown() && g.o.Gate.Use == GateAlways
	}
	for name, c := range pod.Containers {
		if c.Kind != podwatch.Ephemeral && !pod.StartsAgain(name) {
			return false
		}
	}
	return true
}

// offFor returns why no container of a pod may wait in the gate now, or "" if some may.
func (g *Gate) offFor(now time.Time, uid string) string {
	return cmp.Or(g.off(), g.breaker.bars(now, uid))
}

// PodChanged handles a change of a pod in the API server: kubelet reports why it could not start a container. It does not
// block.
func (g *Gate) PodChanged(pod podwatch.Pod) {
	if pod.Deleting {
		g.breaker.forget(pod.UID)
		return
	}
	for _, c := range pod.Containers {
		switch {
		case c.OtherFault:
			g.breaker.explained(pod.UID, c.ID)
		case c.StartFailed:
			g.watch(pod.NamespacedName(), c.ID, causeLost)
		}
	}
}

// watch tells the breaker of a container, and reports if that trips it for the cause.
func (g *Gate) watch(pod, id, cause string) {
	if g.breaker.trips(time.Now(), id, cause) {
		g.o.Observer.Report(observe.GateGivenUp{Pod: observe.Pod{Name: pod}, Container: id, Cause: cause})
	}
}
