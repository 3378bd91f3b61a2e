package starts

import (
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// startKind says what a new container means for the start of its pod.
type startKind int

const (
	newStart  startKind = iota // the container begins a start, the first of the pod or one after a crash
	continues                  // the container belongs to a start that was admitted already
	// atOnce means that the container starts without waiting, and counts. Its pod is exempt, an app container of its pod
	// already runs, or it is a restart and restarts are not paced.
	atOnce
	never // the pod is deleted, though kubelet still makes its next container
)

// ContainerStart is a container that the runtime is about to make, and whether it may start.
type ContainerStart struct {
	NewContainer
	Ends     Ends
	Ticket   Ticket // the pod's; it counts only if MayWait
	Decision throttle.Decision
	MayWait  bool       // the container may not start now, but may wait for its turn
	Gate     *GatePlace // set if MayWait, and a hook may wait for the container
	// If the container may not start now, Arrived is when the pod began to wait, and Since when its counted wait began.
	Arrived, Since time.Time
}

// HookTerms say whether a container may wait in a hook, as far as its pod need not be asked for. The zero value: it may
// not.
type HookTerms struct {
	May bool
	// AnyShim allows that also where NewContainer.NoGate forbids it, unless other containers of the pod run.
	AnyShim bool
	// Recorded: kubelet has a container of this name in its records, and counts a refusal as a crash of that one.
	Recorded bool
}

// Allow reports whether the container may wait in a hook. It may not while the node is short of memory, disk or process
// IDs: kubelet could not evict the pod.
func (h HookTerms) Allow(c ContainerStart) bool {
	return h.May && c.MayWait && !c.Ends.Pressure && (c.NoGate == "" || h.AnyShim && !c.Beside)
}

// GatePlace is whether a container may wait in the gate now. If Decision is admitted, it has a reservation, and WaitLeft is
// the time until its turn is expected.
type GatePlace struct {
	Decision throttle.Decision
	WaitLeft time.Duration
}

// Container handles a container that the runtime is about to make, and decides whether it may start now, or else whether
// it may wait in the gate. pod is what the pod watch knows of its pod.
func (s *Starts) Container(
	now time.Time, sandbox *api.PodSandbox, ctr *api.Container, pod podwatch.Pod, hook HookTerms,
) (a ContainerStart) {
	p := s.lockPod(now, subjectOf(sandbox, pod))
	defer s.unlock()
	a.Ends = s.ledger.ends()
	a.NewContainer = p.isAsked(now, sandbox.GetId(), ctr, pod)
	kind := s.ledger.containerKind(now, p, a, pod)
	a.Ticket = Ticket{s, p.ticket}
	s.ledger.decide(now, p, &a, kind)
	if a.Decision.Granted {
		p.release(a.Container)
	} else {
		p.holdBack(now, a.Container)
		a.Arrived, a.Since = p.ticket.Arrived(), p.ticket.Since(now)
	}
	if hook.Allow(a) {
		a.Gate = s.ledger.askGate(now, a, hook)
	}
	return a
}

// AskGate asks for a place in the gate for a container whose NoGate turned out not to hold.
func (s *Starts) AskGate(now time.Time, a ContainerStart, hook HookTerms) *GatePlace {
	s.lock()
	defer s.unlock()
	return s.ledger.askGate(now, a, hook)
}

// refusal returns what a refusal means for the container. One that exited in this sandbox, and is made again, is a restart:
// it does not come before first starts.
func (h HookTerms) refusal(again bool) throttle.Refusal {
	if h.Recorded && !again {
		return throttle.RetriedLate
	}
	return throttle.RetriedSoon
}

func (l *ledger) askGate(now time.Time, a ContainerStart, hook HookTerms) *GatePlace {
	d, left := a.Ticket.t.ReserveRefused(now, l.waitable, hook.refusal(a.Again), a.Decision)
	return &GatePlace{d, left}
}

// decide decides whether a container of a kind may start now.
func (l *ledger) decide(now time.Time, p *Pod, a *ContainerStart, kind startKind) {
	t, enforces := p.ticket, a.Ends.HoldsNone == ""
	switch {
	case kind == continues:
		a.Decision.Granted = true
	case kind == atOnce:
		t.StartExempt(now)
		a.Decision.Granted = true
	case kind == never:
		a.Decision = barred(reasons.Deleted)
	case enforces && a.Ends.Shutdown:
		a.Decision = barred(gate.NodeShutdown)
	case enforces && a.HeldBackBefore != "":
		a.Decision = barred(gate.Order)
	default:
		a.Decision = t.TryStart(now)
		switch {
		case a.Decision.Granted:
		case !enforces:
			l.goOn(now, p, a.Decision.Reason)
			a.Decision.Granted = true
		case l.startAsLastResort(now, p, a.Decision.Reason):
			a.Decision = t.TryStart(now)
		}
		a.MayWait = !a.Decision.Granted
	}
}

// containerKind returns what a new container means for the start of its pod. It joins the pod if the container begins a
// start.
func (l *ledger) containerKind(now time.Time, p *Pod, a ContainerStart, pod podwatch.Pod) startKind {
	p.endTry(now, pod, a.Undone, a.Again)
	t, enforces := p.ticket, a.Ends.HoldsNone == ""
	_, reason := t.Status()
	request := throttle.Request{Repeats: a.Repeats}
	kind := newStart
	lapses := enforces && a.beginsApp(pod) && t != nil && (t.Lent() || reason == reasons.Stuck)
	if t != nil && t.Stalled() {
		t.SetStalled(now, now) // it goes on
	}
	if lapses {
		// Its slot is lent beyond the limit, or it was stuck and has none. The pods of such starts may all make their app at
		// the same moment, once what their init containers wait for is there.
		t.End(now, reasons.Lapsed)
		request.Arrived, request.Since = t.Arrived(), now // it keeps its place, and waits anew
	} else {
		kind = l.kind(a, p, pod, enforces)
	}
	if kind == continues || kind == never {
		return kind
	}
	l.join(now, p, pod, request)
	if l.isExempt(p, pod) {
		kind = atOnce
	}
	return kind
}

// kind returns what the container starts.
func (l *ledger) kind(a ContainerStart, p *Pod, pod podwatch.Pod, enforces bool) startKind {
	state, reason := p.ticket.Status()
	again := a.Again && !l.config.Load().Spec.PacesRestarts()
	switch {
	case pod.KindOf(a.Container) == podwatch.Ephemeral:
		return continues
	case state == throttle.Gone && reason == reasons.Deleted && enforces:
		return never
	case a.continues(state, reason, p.inShadow() != nil):
		return continues
	case a.AppBeside, again && state != throttle.Waiting: // a sidecar does not admit the app that waits
		return atOnce
	default:
		return newStart
	}
}

// beginsApp reports whether the container is the first of the app containers of its pod, after init containers.
func (a ContainerStart) beginsApp(pod podwatch.Pod) bool {
	return pod.KindOf(a.Container) == podwatch.App && !a.AppBeside && !a.AppEnded && !a.Again && pod.HasInit()
}

// continues reports whether the container belongs to the start of a ticket in this state. shadowed reports whether that
// start continued without an admission.
func (a ContainerStart) continues(state throttle.State, reason reasons.Reason, shadowed bool) bool {
	switch state {
	case throttle.Starting:
		return true
	case throttle.Waiting:
		return shadowed
	case throttle.Gone:
		return reason == reasons.Deleted
	case throttle.Started:
		// Where nothing of the pod runs, its start was over without all of its containers: the node's own signs were
		// wrong, a container could not be made, or the sandbox is another one. Only a stuck start is still the same.
		return !a.Again && (a.Runs || reason == reasons.Stuck)
	default:
		return false
	}
}

// ContainerStarted handles a container whose process runs. A start that was not admitted, because its hook left by itself
// or the daemon was not asked, holds a slot from now on, even over the limit.
func (s *Starts) ContainerStarted(sandbox *api.PodSandbox, ctr *api.Container) {
	now := time.Now()
	pod := s.Known(Key(sandbox))
	p := s.lockPod(now, subjectOf(sandbox, pod))
	defer s.unlock()
	l := &s.ledger
	l.hooks.isBack(ctr.GetId())
	p.begins(now, ctr)
	if pod.IsKnown() {
		l.recount(now, p, pod)
	}
	if pod.KindOf(ctr.GetName()) != podwatch.Ephemeral && p.isUnasked() {
		l.adopt(now, p, pod, false)
		l.effects.wakes = true
		l.report(observe.Unpaced{Pod: observe.Pod{UID: p.UID, Name: p.NamespacedName()}, Reason: observe.NotAsked})
	}
	if pod.IsKnown() && !l.judge(now, p, pod).IsZero() {
		l.effects.wakes = true
	}
}

// isUnasked reports whether a pod that has a running process has no start that was admitted, and none that continued at
// once in the mode Shadow.
func (p *Pod) isUnasked() bool {
	state, reason := p.ticket.Status()
	return state != throttle.Starting && state != throttle.Started && reason != reasons.Deleted && p.inShadow() == nil
}

// ContainerStopped handles a container whose process ended.
func (s *Starts) ContainerStopped(sandbox *api.PodSandbox, ctr *api.Container) {
	s.containerEnded(sandbox, ctr, false)
}

// ContainerRemoved handles a container that was removed.
func (s *Starts) ContainerRemoved(sandbox *api.PodSandbox, ctr *api.Container) {
	s.containerEnded(sandbox, ctr, true)
}

// containerEnded ends the start of a pod if this was the last of its containers to exit, or if it never ran and was the
// last of them, and forgets the pod if nothing is left of it. removed reports whether the container was removed, too.
func (s *Starts) containerEnded(sandbox *api.PodSandbox, ctr *api.Container, removed bool) {
	for uid := Key(sandbox); uid != ""; {
		uid = s.endContainer(uid, ctr, removed, s.Known(uid))
	}
}

// endContainer is containerEnded for a container that seems to be of this pod. If the runtime has forgotten the sandbox, it
// may be of another. Then endContainer does nothing, and returns that one's UID.
func (s *Starts) endContainer(uid string, ctr *api.Container, removed bool, pod podwatch.Pod) (other string) {
	now := time.Now()
	s.lock()
	defer s.unlock()
	if removed {
		s.ledger.hooks.isBack(ctr.GetId())
	}
	p := s.ledger.owner(uid, ctr.GetId())
	switch {
	case p == nil:
		return ""
	case p.UID != uid:
		return p.UID
	}
	p.ends(now, ctr, removed)
	p.endTry(now, pod, p.allUndone(pod), false)
	s.ledger.forget(now, p)
	return ""
}
