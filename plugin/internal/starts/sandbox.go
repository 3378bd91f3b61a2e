package starts

import (
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/pods"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Sandbox adds the pod of a sandbox that the runtime is about to make to the queue, and asks for a reservation. It
// refuses the sandbox only in the mode Enforce, and only if refusable is true. pod is what the pod watch knows, if
// known.
func (r *RuntimeEvents) Sandbox(now time.Time, sandbox *api.PodSandbox, pod podwatch.Pod, known, refusable bool) (pods.Pod, throttle.Decision) {
	var request throttle.Request
	if known {
		request.Profile = r.s.profile(pod, false)
	}
	return r.s.Ledger.sandbox(now, sandbox, pod, known, refusable && r.s.Valve.Enforces(), r.s.Valve.ShutsOut(), request)
}

// sandbox is RuntimeEvents.Sandbox; shut reports whether no pod may wait.
func (l *Ledger) sandbox(now time.Time, sandbox *api.PodSandbox, pod podwatch.Pod, known, refusable, shut bool, request throttle.Request) (pods.Pod, throttle.Decision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.book.Update(sandbox, l.matcher.Needs())
	if !pods.Exempt(l.config.Load().Spec.Exemptions, p, pod, known) {
		t := l.joinLocked(now, p, pod, request)
		if d := l.reserveLocked(now, t, shut); !d.Admitted && refusable {
			l.book.Refuse(p.UID)
			return p, d
		}
	}
	l.book.SetSandbox(p.UID, sandbox.GetId())
	return p, throttle.Decision{Admitted: true}
}

// Arrive returns the ticket of a pod that waits in the waiting room; nil: the pod is exempt. since is when it
// began to wait. pod is what the pod watch knows, if known.
func (s *Starts) Arrive(now time.Time, who pods.Pod, pod podwatch.Pod, known bool, since time.Time) *throttle.Ticket {
	request := throttle.Request{Arrived: since}
	if known {
		request.Profile = s.profile(pod, false)
	}
	return s.Ledger.arrive(now, who, pod, known, request)
}

func (l *Ledger) arrive(now time.Time, who pods.Pod, pod podwatch.Pod, known bool, request throttle.Request) *throttle.Ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p, has := l.book.Get(who.UID); has {
		who = p
	}
	if pods.Exempt(l.config.Load().Spec.Exemptions, who, pod, known) {
		return nil
	}
	t := l.joinLocked(now, who, pod, request)
	l.byRoom[who.UID] = t
	return t
}

// ReserveGate decides whether a container of a pod may wait in the gate.
func (s *Starts) ReserveGate(now time.Time, t *throttle.Ticket) throttle.Decision {
	return s.Ledger.reserve(now, t, s.Valve.ShutsOut())
}

func (l *Ledger) reserve(now time.Time, t *throttle.Ticket, shut bool) throttle.Decision {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reserveLocked(now, t, shut)
}

// reserveLocked asks the limiter for a reservation. A pod that waited in the waiting room needs none. It had a reservation
// when it left the room, and pods that got their reservation since then wait longer.
func (l *Ledger) reserveLocked(now time.Time, t *throttle.Ticket, shut bool) throttle.Decision {
	if shut {
		return barred(gate.NodeShutdown)
	}
	d := t.Reserve(now, l.waitable)
	d.Admitted = d.Admitted || d.Reason == reasons.GateRoom && l.byRoom[t.UID()] == t
	return d
}

// MayHold reports whether a pod that the pod watch does not know yet may have to wait, by its sandbox alone.
func (s *Starts) MayHold(sandbox *api.PodSandbox) bool {
	p := pods.NewBook().Update(sandbox, startpolicy.Needs{})
	return s.Valve.Enforces() && !pods.Exempt(s.config.Load().Spec.Exemptions, p, podwatch.Pod{}, false)
}

// View returns a copy of the latest ticket of a pod; ok is false if there is none.
func (s *Starts) View(now time.Time, uid string) (v throttle.TicketView, ok bool) {
	return s.o.Limiter.View(now, uid)
}

// joinLocked returns the ticket of a pod that starts, in its groups. request holds the details of this start.
func (l *Ledger) joinLocked(now time.Time, p pods.Pod, pod podwatch.Pod, request throttle.Request) *throttle.Ticket {
	request.UID, request.Name, request.Flow = p.UID, p.NamespacedName(), p.Namespace
	request.Priority, request.MaxWait = pod.Priority, pod.ActiveDeadline/10
	request.Groups = l.matcher.Groups(now, subject(p, pod))
	return l.limiter.Join(now, request)
}

// SandboxStopped handles the end of a sandbox, and ends the start of its pod. The end of a refused
// sandbox changes nothing: its pod keeps its place in the queue.
func (r *RuntimeEvents) SandboxStopped(sandbox *api.PodSandbox) {
	r.s.Ledger.stopSandbox(time.Now(), pods.Key(sandbox), sandbox.GetId())
}

// stopSandbox is RuntimeEvents.SandboxStopped. From now on the pod counts for no policy until it starts again,
// although the runtime has not reported the exits of its containers yet.
func (l *Ledger) stopSandbox(now time.Time, uid, sandbox string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.book.StopSandbox(uid, sandbox) {
		l.matcher.Finished(now, uid)
		sandboxGone(now, l.limiter.Lookup(uid))
	}
}

// sandboxGone ends a start whose sandbox is gone. A pod that waits keeps its place in the queue. t may be nil.
func sandboxGone(now time.Time, t *throttle.Ticket) {
	if t == nil {
		return
	}
	switch state, _ := t.Status(); state {
	case throttle.Starting:
		t.End(now, reasons.SandboxGone)
	case throttle.Waiting:
		t.Unreserve()
	}
}

// SandboxRemoved handles a sandbox that was removed.
func (r *RuntimeEvents) SandboxRemoved(sandbox *api.PodSandbox) {
	r.SandboxStopped(sandbox)
	uid := pods.Key(sandbox)
	r.s.change(uid, func(now time.Time) {
		if r.s.Ledger.book.RemoveSandbox(uid, sandbox.GetId()) && r.s.o.Pods == nil {
			// There is no API server to report that the pod was deleted. Another sandbox of the pod
			// may be removed while the pod lives.
			if t := r.s.o.Limiter.Lookup(uid); t != nil {
				t.End(now, reasons.SandboxGone)
			}
		}
	})
}

// change calls change, with the lock of the book held, and forgets the pod if nothing is left of it.
func (s *Starts) change(uid string, change func(now time.Time)) {
	_, known := s.Known(uid)
	if s.Ledger.change(uid, known, change) {
		s.forgotten(uid)
	}
}

// change is Starts.change. It reports whether the pod was forgotten.
func (l *Ledger) change(uid string, known bool, change func(now time.Time)) (forgotten bool) {
	l.mu.Lock()
	defer l.mu.Unlock() // also when change panics
	now := time.Now()
	change(now)
	_, has := l.book.Get(uid)
	if kept := has || l.byRoom[uid] != nil; !kept || isLeft(l.book, uid, l.limiter.Lookup(uid)) {
		return false
	}
	l.dropLocked(uid)
	if !known {
		l.matcher.Forget(now, uid)
	}
	return true
}

// isLeft reports whether anything is left of a pod: a sandbox, a container, or a ticket that waits or starts. t is its
// ticket, or nil.
func isLeft(b *pods.Book, uid string, t *throttle.Ticket) bool {
	if t != nil {
		if state, _ := t.Status(); state == throttle.Waiting || state == throttle.Starting {
			return true
		}
	}
	return !b.Empty(uid)
}

// dropLocked forgets a pod.
func (l *Ledger) dropLocked(uid string) {
	l.book.Drop(uid)
	delete(l.shadows, uid)
	delete(l.byRoom, uid)
}

// forgetDeleted ends the start of a pod that was deleted from the API server, and forgets the pod: the kubelet has
// removed all of it. The runtime does not report the removal of sandboxes that are older than itself.
func (l *Ledger) forgetDeleted(now time.Time, uid string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.limiter.Lookup(uid); t != nil {
		t.End(now, reasons.Deleted)
	}
	l.dropLocked(uid)
	l.matcher.Forget(now, uid) // after the book: without that, the pod is not counted again
}
