package starts

import (
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/pods"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Sandbox decides at the first point: may the pod of a sandbox that is being made come up to wait
// near its turn. One that may not is let in all the same, where no pod is held or it is not to be
// refused here. pod is what the pod watch knows of it, if anything.
func (r *RuntimeEvents) Sandbox(now time.Time, sandbox *api.PodSandbox, pod podwatch.Pod, known, refusable bool) (pods.Pod, throttle.Decision) {
	var request throttle.Request
	if known {
		request.Expected = r.s.expected(pod, false)
	}
	return r.s.Ledger.sandbox(now, sandbox, pod, known, refusable && r.s.Valve.Holds(), request, func(t *throttle.Ticket) throttle.Decision { return r.s.reserve(now, t) })
}

// sandbox is RuntimeEvents.Sandbox; reserve asks the limiter for a reservation.
func (l *Ledger) sandbox(now time.Time, sandbox *api.PodSandbox, pod podwatch.Pod, known, refusable bool, request throttle.Request, reserve func(*throttle.Ticket) throttle.Decision) (pods.Pod, throttle.Decision) {
	needs := l.policies.Needs()
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.book.See(sandbox, needs)
	if pods.Exemption(l.config.Load().Spec.Exemptions, p, pod, known) == "" {
		t := l.join(now, p, pod, request)
		if d := reserve(t); !d.Admitted && !l.byRoom.passes(t, d) && refusable {
			l.book.Refuse(now, p.UID, sandbox.GetId())
			return p, d
		}
	}
	l.book.Enter(p.UID, sandbox.GetId())
	return p, throttle.Decision{Admitted: true}
}

// Arrive returns the ticket of a pod that waits before its sandbox exists, since a time; nil: it is
// exempt. pod is what the pod watch knows of it, if anything.
func (s *Starts) Arrive(now time.Time, who pods.Pod, pod podwatch.Pod, known bool, since time.Time) *throttle.Ticket {
	request := throttle.Request{Arrived: since}
	if known {
		request.Expected = s.expected(pod, false)
	}
	return s.Ledger.arrive(now, who, pod, known, request)
}

func (l *Ledger) arrive(now time.Time, who pods.Pod, pod podwatch.Pod, known bool, request throttle.Request) *throttle.Ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p, has := l.book.Get(who.UID); has {
		who = p
	}
	if pods.Exemption(l.config.Load().Spec.Exemptions, who, pod, known) != "" {
		return nil
	}
	t := l.join(now, who, pod, request)
	l.byRoom[who.UID] = t
	return t
}

// fromRoom are the starts that waited in the waiting room, by UID.
type fromRoom map[string]*throttle.Ticket

// passes reports whether a start goes on though there is no place near its turn, because it waited in
// the room: it had a reservation when it left, and those that came near later wait longer.
func (r fromRoom) passes(t *throttle.Ticket, d throttle.Decision) bool {
	return d.Reason == reasons.GateRoom && r[t.UID()] == t
}

// Reserve asks whether a pod may wait near its turn.
func (s *Starts) Reserve(now time.Time, t *throttle.Ticket) throttle.Decision {
	d := s.reserve(now, t)
	s.Ledger.mu.Lock()
	defer s.Ledger.mu.Unlock()
	d.Admitted = d.Admitted || s.Ledger.byRoom.passes(t, d)
	return d
}

func (s *Starts) reserve(now time.Time, t *throttle.Ticket) throttle.Decision {
	if s.Valve.ShutsOut() {
		return Barred(gate.NodeShutdown)
	}
	return t.Reserve(now, s.Waitable)
}

// Exemption tells why a pod of which no record is kept yet is not made to wait, as far as its
// sandbox alone says; empty: it is.
func (s *Starts) Exemption(sandbox *api.PodSandbox) string {
	p := pods.NewBook().See(sandbox, s.Policies.Needs())
	return pods.Exemption(s.config.Load().Spec.Exemptions, p, podwatch.Pod{}, false)
}

// join returns the ticket of a pod that starts, in its groups; request says what is particular to
// this start. l.mu must be held.
func (l *Ledger) join(now time.Time, p pods.Pod, pod podwatch.Pod, request throttle.Request) *throttle.Ticket {
	request.UID, request.Name, request.Flow = p.UID, p.Title(), p.Namespace
	request.Priority, request.MaxWait = pod.Priority, pod.ActiveDeadline/10
	return l.policies.Join(now, subject(p, pod), func(groups []throttle.Membership) *throttle.Ticket {
		request.Groups = groups
		return l.limiter.Join(now, request)
	})
}

// SandboxStopped takes note of the end of a sandbox. The stop of one that was
// refused says nothing of the pod: it keeps its place. Of any other, whatever
// was starting in it is not any more.
func (r *RuntimeEvents) SandboxStopped(sandbox *api.PodSandbox) {
	now, uid := time.Now(), pods.Key(sandbox)
	if r.s.Ledger.stopSandbox(now, uid, sandbox.GetId()) {
		r.sandboxGone(now, uid)
	}
}

// stopSandbox reports whether the sandbox was its pod's present one. Nothing runs in it any more,
// though the runtime has yet to tell of the exits, and the pod counts for no policy until it
// starts anew.
func (l *Ledger) stopSandbox(now time.Time, uid, sandbox string) (present bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	present = l.book.StopSandbox(uid, sandbox)
	if present {
		l.policies.Finished(now, uid)
	}
	return present
}

// sandboxGone ends a start whose sandbox is gone. A pod that waits keeps its place.
func (r *RuntimeEvents) sandboxGone(now time.Time, uid string) {
	t := r.s.Limiter.Lookup(uid)
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

// SandboxRemoved takes note of a sandbox that is gone.
func (r *RuntimeEvents) SandboxRemoved(sandbox *api.PodSandbox) {
	r.SandboxStopped(sandbox)
	uid := pods.Key(sandbox)
	r.s.change(uid, func(now time.Time) {
		if r.s.Ledger.book.RemoveSandbox(uid, sandbox.GetId()) && r.s.Pods == nil {
			// No API server will say that the pod was deleted. An older sandbox that
			// is cleared away says nothing of it.
			if t := r.s.Limiter.Lookup(uid); t != nil {
				t.End(now, reasons.SandboxGone)
			}
		}
	})
}

// change makes a change in the book after which nothing may be left of a pod, and forgets it then.
// s.Ledger.mu is held during the change.
func (s *Starts) change(uid string, change func(now time.Time)) {
	_, known := s.known(uid)
	if s.Ledger.change(uid, known, change) {
		s.forgotten(uid)
	}
}

// change is Starts.change; it reports whether the pod was forgotten: nothing refers to it any more, no
// sandbox, no container, and no ticket under way.
func (l *Ledger) change(uid string, known bool, change func(now time.Time)) (forgotten bool) {
	l.mu.Lock()
	defer l.mu.Unlock() // also when it panics: the next pod needs the lock
	now := time.Now()
	change(now)
	_, has := l.book.Get(uid)
	if kept := has || l.byRoom[uid] != nil; !kept || !l.book.Empty(uid) {
		return false
	}
	if t := l.limiter.Lookup(uid); t != nil {
		if state, _ := t.Status(); state == throttle.Waiting || state == throttle.Starting {
			return false
		}
	}
	l.drop(uid)
	if !known {
		l.policies.Forget(now, uid)
	}
	return true
}

// drop drops all that is kept of a pod. l.mu must be held.
func (l *Ledger) drop(uid string) {
	l.book.Drop(uid)
	delete(l.shadows, uid)
	delete(l.byRoom, uid)
}

// forgetDeleted ends the start of a pod that the API server no longer has, and drops what the
// runtime told of it: kubelet has taken down all of it. The runtime does not say so of
// sandboxes that are older than itself.
func (l *Ledger) forgetDeleted(now time.Time, uid string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.limiter.Lookup(uid); t != nil {
		t.End(now, reasons.Deleted)
	}
	l.drop(uid)
	l.policies.Forget(now, uid) // after the book: without that, the pod is not counted again
}
