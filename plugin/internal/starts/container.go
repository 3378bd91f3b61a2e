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
	Valve    ValveState
	Ticket   Ticket // the pod's; it counts only if MayWait
	Decision throttle.Decision
	MayWait  bool      // the container may not start now, but may wait for its turn
	Since    time.Time // when the pod began to wait, if the container may not start now
}

// Container handles a container that the runtime is about to make, and decides whether it may start now. pod is what
// the pod watch knows of its pod, if known.
func (r *RuntimeEvents) Container(now time.Time, sandbox *api.PodSandbox, ctr *api.Container, pod podwatch.Pod, known bool) ContainerStart {
	valve, _ := r.s.Valve.Now()
	a, t, unpaced := r.s.Ledger.container(now, sandbox, ctr, pod, known, valve)
	a.Ticket = Ticket{r.s, t}
	if unpaced != nil {
		r.s.o.Observer.Report(unpaced)
	}
	return a
}

// container adds the container to its pod and the pod to the queue, and decides whether the container may start. It
// returns the pod's ticket, or nil if the container continues a start that has none, and what is to be reported, or nil.
func (l *Ledger) container(
	now time.Time, sandbox *api.PodSandbox, ctr *api.Container, pod podwatch.Pod, known bool, valve ValveState,
) (a ContainerStart, t *throttle.Ticket, unpaced observe.Event) {
	p := l.lockMatching(now, subjectOf(sandbox, pod))[0]
	defer l.unlock()
	p.update(sandbox)
	a = ContainerStart{NewContainer: p.isAsked(now, sandbox.GetId(), ctr, pod), Valve: valve}
	enforces := !valve.HoldsNone
	kind := l.entries.containerKind(now, p, a, pod, known, enforces)
	t = p.ticket
	switch {
	case kind == continues:
		a.Decision.Admitted = true
	case kind == atOnce:
		t.StartExempt(now)
		a.Decision.Admitted = true
	case kind == never:
		a.Decision = barred(reasons.Deleted)
	case enforces && valve.Shutdown:
		a.Decision = barred(gate.NodeShutdown)
	case enforces && a.After != "":
		a.Decision = barred(gate.Order)
	default:
		a.Decision = t.TryStart(now)
		switch {
		case a.Decision.Admitted:
		case !enforces:
			unpaced = l.entries.goOn(now, p, a.Decision.Reason)
			a.Decision.Admitted = true
		case l.entries.startAsLastResort(now, p, a.Decision.Reason):
			a.Decision = t.TryStart(now)
		}
		a.MayWait = !a.Decision.Admitted
	}
	if a.Decision.Admitted {
		p.release(a.Container)
		return a, t, unpaced
	}
	p.hold(a.Container)
	a.Since = t.Since(now)
	return a, t, nil
}

// containerKind returns what a new container means for the start of its pod. It joins the pod if the container begins a
// start.
func (e *entries) containerKind(now time.Time, p *Pod, a ContainerStart, pod podwatch.Pod, known, enforces bool) startKind {
	p.endTry(now, pod, a.Undone, a.Again)
	t := p.ticket
	_, reason := t.Status()
	request := throttle.Request{Repeats: a.Repeats}
	kind := newStart
	lapses := enforces && known && a.beginsApp(pod) && t != nil && (t.Lent() || reason == reasons.Stuck)
	if t != nil && t.Stalled() {
		e.limiter.SetStalled(now, a.UID, now) // it goes on
	}
	if lapses {
		// Its slot is lent beyond the limit, or it was stuck and has none. The pods of such starts may all make their app at
		// the same moment, once what their init containers wait for is there.
		t.End(now, reasons.Lapsed)
		request.Arrived, request.Since = t.Arrived(), now // it keeps its place, and waits anew
	} else {
		kind = e.kind(a, p, pod, known, enforces)
	}
	if kind == continues || kind == never {
		return kind
	}
	e.join(now, p, pod, request)
	if isExempt(e.config.Load().Spec.Exemptions, p.Identity, pod, known) {
		kind = atOnce
	}
	return kind
}

// kind returns what the container starts.
func (e *entries) kind(a ContainerStart, p *Pod, pod podwatch.Pod, known, enforces bool) startKind {
	state, reason := p.start()
	again := a.Again && !e.config.Load().Spec.PacesRestarts()
	switch {
	case known && pod.KindOf(a.Container) == podwatch.Ephemeral:
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

// ContainerStarted handles a container whose process runs.
func (r *RuntimeEvents) ContainerStarted(sandbox *api.PodSandbox, ctr *api.Container) {
	defer r.s.Hooks.Back(ctr.GetId()) // once it is counted
	pod, known := r.s.Known(Key(sandbox))
	unasked, again := r.s.Ledger.containerStarted(time.Now(), sandbox, ctr, pod, known)
	if unasked {
		r.s.o.Observer.Report(observe.Unpaced{Pod: observe.Pod{UID: Key(sandbox), Name: NameOf(sandbox)}, Reason: observe.NotAsked})
	}
	if unasked || !again.IsZero() {
		r.s.Wake()
	}
}

// containerStarted is RuntimeEvents.ContainerStarted. A start that was not admitted, because its hook left by
// itself or the daemon was not asked, is unasked. It holds a slot from now on, even over the limit. again is when to
// judge the start again even without a change, or zero if that is not needed.
func (l *Ledger) containerStarted(
	now time.Time, sandbox *api.PodSandbox, ctr *api.Container, pod podwatch.Pod, known bool,
) (unasked bool, again time.Time) {
	p := l.lockMatching(now, subjectOf(sandbox, pod))[0]
	defer l.unlock()
	p.update(sandbox)
	p.begins(now, ctr)
	if known {
		l.entries.recount(now, p, pod, false)
	}
	if unasked = pod.KindOf(ctr.GetName()) != podwatch.Ephemeral && p.isUnasked(); unasked {
		l.entries.adopt(now, p, pod, false)
	}
	if known {
		_, again = l.entries.judge(now, p, pod)
	}
	return unasked, again
}

// isUnasked reports whether a pod that has a running process has no start that was admitted, and none that continued at
// once in the mode Shadow.
func (p *Pod) isUnasked() bool {
	state, reason := p.start()
	return state != throttle.Starting && state != throttle.Started && reason != reasons.Deleted && p.inShadow() == nil
}

// ContainerStopped handles a container whose process ended.
func (r *RuntimeEvents) ContainerStopped(sandbox *api.PodSandbox, ctr *api.Container) {
	r.containerEnded(sandbox, ctr, false)
}

// ContainerRemoved handles a container that was removed.
func (r *RuntimeEvents) ContainerRemoved(sandbox *api.PodSandbox, ctr *api.Container) {
	r.s.Hooks.Back(ctr.GetId())
	r.containerEnded(sandbox, ctr, true)
}

// containerEnded ends the start of a pod if this was the last of its containers to exit, or if it never ran and was the
// last of them. removed reports whether the container was removed, too.
func (r *RuntimeEvents) containerEnded(sandbox *api.PodSandbox, ctr *api.Container, removed bool) {
	now := time.Now()
	pod, _ := r.s.Known(Key(sandbox))
	uid := r.s.Ledger.endContainer(now, sandbox, pod, ctr, removed)
	if uid != Key(sandbox) { // the runtime has forgotten the sandbox
		pod, _ = r.s.Known(uid)
		r.s.Ledger.endEmpty(now, uid, pod)
	}
	r.s.forgetEmpty(uid)
}

// endContainer is containerEnded, and returns the UID of the container's pod. pod is what the pod watch knows of the
// sandbox's.
func (l *Ledger) endContainer(now time.Time, sandbox *api.PodSandbox, pod podwatch.Pod, ctr *api.Container, removed bool) (uid string) {
	l.lock()
	defer l.unlock() // also after a panic
	p := l.entries.owner(sandbox, ctr.GetId())
	if p == nil {
		return ""
	}
	p.ends(now, ctr, removed)
	p.endTry(now, pod, p.allUndone(pod), false)
	return p.UID
}

// endEmpty ends the start of a pod if its containers have all ended.
func (l *Ledger) endEmpty(now time.Time, uid string, pod podwatch.Pod) {
	l.lock()
	defer l.unlock()
	if p := l.entries.pods[uid]; p != nil {
		p.endTry(now, pod, p.allUndone(pod), false)
	}
}

// endTry ends a start that was admitted or, in the mode Shadow, that continued, if nothing of it is left: no process ran,
// and none will come of the last try (undone), or its app containers have all exited since. The next container is a new
// start, and may come much later. again reports whether kubelet makes a container of an app container that has exited now;
// before, only a pod with restartPolicy Always is sure to get one. It reports whether the ticket ended.
func (p *Pod) endTry(now time.Time, pod podwatch.Pod, undone, again bool) bool {
	if p.ticket == nil {
		return false
	}
	began, sh := p.ticket.Admitted(), p.inShadow()
	if sh != nil {
		began = sh.began
	}
	reason := reasons.NotMade
	if !undone {
		// Of any other pod, the pod watch reports whether it completed or failed.
		if !again && pod.RestartPolicy != "Always" || !p.allExited(began, pod) {
			return false
		}
		reason = reasons.Exited
	}
	if sh != nil {
		sh.end(now, reason)
		return false
	}
	if state, _ := p.start(); state != throttle.Starting {
		return false
	}
	p.end(now, reason)
	return true
}
