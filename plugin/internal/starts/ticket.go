package starts

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Ticket is the ticket of a pod, for package waiting: a process or a handler waits for it, or asks for its slot. Only a
// Starts makes one. Its methods take the lock, so they are safe for concurrent use. They do not block.
type Ticket struct {
	s *Starts
	t *throttle.Ticket
}

// UID returns the UID of the pod.
func (t Ticket) UID() string { return t.t.UID() }

// Decided returns a channel that is closed once the ticket is admitted or gone.
func (t Ticket) Decided() <-chan struct{} { return t.t.Decided() }

// Status returns the state of the ticket, and why it has that state; the reason is empty while the ticket waits.
func (t Ticket) Status() (throttle.State, reasons.Reason) {
	t.s.lock()
	defer t.s.unlock()
	return t.t.Status()
}

// Wait notes that from now on something waits for the ticket, and starts the pod when it is admitted. It does not
// block: see Decided. The caller must call stop when it no longer waits.
func (t Ticket) Wait(now time.Time) (stop func()) {
	t.s.lock()
	defer t.s.unlock()
	t.t.Wait(now)
	return t.stopWaiting
}

// WaitInHook is Wait for the hook of a container, which has come back if it outlived an earlier daemon.
func (t Ticket) WaitInHook(now time.Time, containerID string) (stop func()) {
	t.s.lock()
	defer t.s.unlock()
	t.t.Wait(now)
	t.s.Hooks.backLocked(containerID)
	return t.stopWaiting
}

func (t Ticket) stopWaiting() {
	t.s.lock()
	defer t.s.unlock()
	t.t.StopWaiting(time.Now())
}

// TryStart asks for a slot for a process or a handler that cannot wait any longer.
func (t Ticket) TryStart(now time.Time) throttle.Decision {
	t.s.lock()
	defer t.s.unlock()
	return t.t.TryStart(now)
}

// DeadlineReached decides on the ticket because its process can wait no longer. A pod that may not start now keeps its
// place in the queue. See [throttle.Ticket.DeadlineReached].
func (t Ticket) DeadlineReached(now time.Time) throttle.Decision {
	t.s.lock()
	defer t.s.unlock()
	d := t.t.DeadlineReached(now)
	if p := t.s.ledger.pods[t.UID()]; !d.Admitted && p != nil {
		p.expire()
	}
	return d
}

// Yield sets whether the pod lets those behind it in the queue start first. See [throttle.Ticket.Yield].
func (t Ticket) Yield(now time.Time, yields bool) {
	t.s.lock()
	defer t.s.unlock()
	t.t.Yield(now, yields)
}

// LeaveRoom decides whether the pod may leave the waiting room to wait in the gate, for at most waitable.
func (t Ticket) LeaveRoom(now time.Time, waitable time.Duration) throttle.Decision {
	t.s.lock()
	defer t.s.unlock()
	return t.t.Reserve(now, waitable, throttle.RetriedSoon)
}

// StartNotHeld lets a start continue though its ticket waits, because the mode holds no pod.
func (t Ticket) StartNotHeld(now time.Time) {
	t.s.lock()
	defer t.s.unlock()
	l := &t.s.ledger
	v, _ := l.limiter.View(now, t.UID())
	if p := l.pods[t.UID()]; p != nil && p.ticket == t.t {
		l.goOn(now, p, v.Reason)
	}
}

// Arrive returns the ticket of a pod that waits in the waiting room; waits is false if the pod is exempt. since is when
// it began to wait. pod is what the pod watch knows.
func (s *Starts) Arrive(now time.Time, who Identity, pod podwatch.Pod, since time.Time) (t Ticket, waits bool) {
	request := throttle.Request{Arrived: since}
	if pod.IsKnown() {
		request.Profile = s.profile(pod, false)
	}
	p := s.lockPod(now, subject{Identity: who, facts: pod.Facts})
	defer s.unlock()
	if !p.reported {
		p.Identity = who
	}
	p.fromRoom = true // also if it is exempt: it is forgotten unless a sandbox follows
	if s.ledger.isExempt(p, pod) {
		return Ticket{}, false
	}
	return Ticket{s, s.ledger.join(now, p, pod, request)}, true
}

// HookTicket returns the ticket of a pod whose hook waits, a channel that is closed when the container is removed or
// replaced, and why waits end now. The channel is nil if the runtime did not report the container. since is when the hook
// began to wait. A hook that outlived an earlier daemon gets back its place in the queue; if its pod is exempt by now, it
// starts at once.
func (s *Starts) HookTicket(who Identity, containerID string, since time.Time) (t Ticket, gone <-chan struct{}, ends ValveState) {
	now := time.Now()
	pod := s.Known(who.UID)
	p := s.lockPod(now, subject{Identity: who, facts: pod.Facts})
	defer s.unlock()
	p.reported = true
	repeats := 0
	if c := p.containers[containerID]; c != nil {
		gone, repeats = c.gone, p.exits[c.name].repeats
	}
	if state, reason := p.start(); p.ticket != nil && (state != throttle.Gone || reason == reasons.Deleted) {
		return Ticket{s, p.ticket}, gone, s.Valve.stateLocked()
	}
	s.ledger.join(now, p, pod, throttle.Request{Arrived: since, Repeats: repeats})
	if s.ledger.isExempt(p, pod) {
		p.ticket.StartExempt(now)
	}
	return Ticket{s, p.ticket}, gone, s.Valve.stateLocked()
}
