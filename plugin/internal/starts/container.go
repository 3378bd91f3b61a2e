package starts

import (
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/pods"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// StartKind says what a container that is about to be made starts.
type StartKind int

// The kinds.
const (
	// NewStart: the container begins a start of its own, the first of the pod or one after a crash.
	NewStart StartKind = iota
	// Continues: the container belongs to a start that was admitted.
	Continues
	// AtOnce: the container never waits, and is counted: another of its pod
	// runs and would be held up, or it is a restart and those are not paced.
	AtOnce
	// Never: the pod is deleted, and yet kubelet goes on with its next container.
	Never
)

// ContainerStart is a container that is about to be made, and what that means for the start of its pod.
type ContainerStart struct {
	pods.Made
	Ticket *throttle.Ticket // the pod's; nil: it has none, and goes on
	Kind   StartKind
	Exempt string // why the pod is not made to wait; empty: it is
}

// Container takes note of a container that is about to be made, and tells what it starts: the
// second point. pod is what the pod watch knows, if anything.
func (r *RuntimeEvents) Container(now time.Time, sandbox *api.PodSandbox, ctr *api.Container, pod podwatch.Pod, known bool) ContainerStart {
	return r.s.Ledger.container(now, sandbox, ctr, pod, known, r.s.Valve.Holds())
}

// container is RuntimeEvents.Container; holds says whether any pod is held.
func (l *Ledger) container(now time.Time, sandbox *api.PodSandbox, ctr *api.Container, pod podwatch.Pod, known, holds bool) ContainerStart {
	needs := l.policies.Needs()
	l.mu.Lock()
	defer l.mu.Unlock() // also when it panics: the next pod needs the lock
	a := ContainerStart{Made: l.book.Create(now, sandbox, ctr, needs, pod)}
	if a.Again {
		l.endExited(now, a.UID, pod, true)
	}
	a.Ticket = l.limiter.Lookup(a.UID)
	if a.Kind = l.kindOf(a, pod, known, holds); a.Kind == Continues || a.Kind == Never {
		return a
	}
	a.Ticket = l.join(now, a.Pod, pod, throttle.Request{Repeats: a.Repeats})
	a.Exempt = pods.Exemption(l.config.Load().Spec.Exemptions, a.Pod, pod, known)
	return a
}

// kindOf tells what a container starts. l.mu must be held.
func (l *Ledger) kindOf(a ContainerStart, pod podwatch.Pod, known, holds bool) StartKind {
	if known && pod.Containers[a.Container].Kind == podwatch.Ephemeral {
		return Continues
	}
	if t := a.Ticket; t != nil {
		state, reason := t.Status()
		switch {
		case state == throttle.Gone && reason == reasons.Deleted && holds:
			return Never
		case a.continues(state, reason, l.shadows.of(t) != nil):
			return Continues
		}
	}
	if a.AppBeside || (a.Again && !l.config.Load().Spec.PacesRestarts()) {
		return AtOnce
	}
	return NewStart
}

// continues reports whether the container belongs to the start of a ticket in this state that was
// admitted, or that went on without that.
func (a ContainerStart) continues(state throttle.State, reason reasons.Reason, shadowed bool) bool {
	switch state {
	case throttle.Starting:
		return true
	case throttle.Waiting:
		return shadowed
	case throttle.Gone:
		return reason == reasons.Deleted
	case throttle.Started:
		// By the node's own signs, a pod whose init container has ended, or sleeps,
		// looks like one that has started.
		guessed := (reason == reasons.Inferred || reason == reasons.Completed) && !a.Runs
		return !a.Again && !guessed
	default:
		return false
	}
}

// ContainerStarted takes note of a process that runs.
func (r *RuntimeEvents) ContainerStarted(sandbox *api.PodSandbox, ctr *api.Container) {
	p := r.s.Ledger.noteStarted(sandbox, ctr)
	pod, known := r.s.known(p.UID)
	r.s.Ledger.countRunning(time.Now(), p.UID, pod)
	if pod.Containers[ctr.GetName()].Kind != podwatch.Ephemeral {
		r.countUnasked(p, pod)
	}
	r.s.Hooks.Back(ctr.GetId()) // once it is counted
	if known && r.s.Limiter.Lookup(p.UID) != nil {
		r.s.PodChanged(pod, false)
	}
}

func (l *Ledger) noteStarted(sandbox *api.PodSandbox, ctr *api.Container) pods.Pod {
	needs := l.policies.Needs()
	l.mu.Lock()
	defer l.mu.Unlock() // also when it panics: the next pod needs the lock
	return l.book.Start(time.Now(), sandbox, ctr, needs)
}

// countUnasked counts a start that went on without having been admitted: its hook
// left by itself, or the daemon was not asked. It holds a slot from now on, over the limit
// where reality is.
func (r *RuntimeEvents) countUnasked(p pods.Pod, pod podwatch.Pod) {
	if t := r.s.Limiter.Lookup(p.UID); t != nil {
		state, reason := t.Status()
		if state == throttle.Starting || state == throttle.Started || reason == reasons.Deleted {
			return
		}
		if _, ok := r.s.Ledger.Shadowed(t); ok {
			return
		}
	}
	r.s.Observer.Unpaced(p.UID, p.Title(), observe.NotAsked)
	r.s.Ledger.adopt(time.Now(), p.UID, pod)
	r.s.Wake()
}

// ContainerStopped takes note of a process that ended.
func (r *RuntimeEvents) ContainerStopped(sandbox *api.PodSandbox, ctr *api.Container) {
	r.containerEnded(sandbox, ctr, false)
}

// ContainerRemoved takes note of a container that is gone.
func (r *RuntimeEvents) ContainerRemoved(sandbox *api.PodSandbox, ctr *api.Container) {
	r.s.Hooks.Back(ctr.GetId())
	r.containerEnded(sandbox, ctr, true)
}

// containerEnded notes in the book that a container ended, and ends the start of a pod of which all have;
// removed: the container is gone, too.
func (r *RuntimeEvents) containerEnded(sandbox *api.PodSandbox, ctr *api.Container, removed bool) {
	var uid string
	r.s.Ledger.Read(func(b *pods.Book) { uid, _ = b.Owner(sandbox, ctr) })
	pod, _ := r.s.known(uid)
	r.s.change(uid, func(now time.Time) {
		r.s.Ledger.book.EndContainer(now, uid, ctr, removed)
		r.s.Ledger.endExited(now, uid, pod, false)
	})
}

// endExited ends the start of a pod whose app containers have all exited since it was
// admitted: what comes next is a start of its own, and may be long in coming. again:
// kubelet makes the next container; before it does, only a pod that is always
// restarted is sure to get one. l.mu must be held.
func (l *Ledger) endExited(now time.Time, uid string, pod podwatch.Pod, again bool) {
	if !again && pod.RestartPolicy != "Always" {
		return // the pod watch tells whether it completed or failed
	}
	v, ok := l.limiter.View(now, uid)
	t := l.limiter.Lookup(uid)
	if ok && v.State == throttle.Starting && l.shadows.of(t) == nil && l.book.AllExited(uid, v.Admitted, pod) {
		t.End(now, reasons.Exited)
	}
}

// Attend returns the ticket that a hook waits for, and a channel that is closed
// when nothing may start for its container any more. A hook that outlived an
// earlier daemon finds its place again by the time since which it waits.
func (s *Starts) Attend(pod pods.Pod, containerID string, since time.Time) (*throttle.Ticket, <-chan struct{}) {
	known, _ := s.known(pod.UID)
	return s.Ledger.attend(pod, known, containerID, since)
}

func (l *Ledger) attend(pod pods.Pod, known podwatch.Pod, containerID string, since time.Time) (*throttle.Ticket, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	p, repeats, gone := l.book.Hook(now, pod, containerID)
	t := l.limiter.Lookup(p.UID)
	if t != nil {
		if state, reason := t.Status(); state != throttle.Gone || reason == reasons.Deleted {
			return t, gone
		}
	}
	return l.join(now, p, known, throttle.Request{Arrived: since, Repeats: repeats}), gone
}

// HookLeft takes note of a hook that waits no longer.
func (s *Starts) HookLeft(uid, containerID string) {
	s.change(uid, func(time.Time) { s.Ledger.book.HookLeft(uid, containerID) })
}
