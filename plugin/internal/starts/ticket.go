package starts

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Ticket is what package waiting has of a pod's [throttle.Ticket]: a process or a handler waits for it, or asks for its
// slot. To a decision of the limiter it adds the lock, what the pod's container and shadow learn of it, and the effects.
// Only a Starts makes one. Its methods are safe for concurrent use. They do not block.
type Ticket struct {
	s *Starts
	t *throttle.Ticket
}

// UID returns the UID of the pod.
func (t Ticket) UID() string { return t.t.UID() }

// Decided returns a channel that is closed once the ticket is admitted or gone.
func (t Ticket) Decided() <-chan struct{} { return t.t.Decided() }

// Wait notes that from now on something waits for the ticket, and starts the pod when it is admitted. It does not
// block: see Decided. The caller must call stop when it no longer waits.
func (t Ticket) Wait(now time.Time) (stop func()) {
	t.s.lock()
	defer t.s.unlock()
	t.t.Wait(now)
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
	if p := t.s.ledger.pods[t.UID()]; !d.Granted && p != nil {
		p.expire(now)
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
	return t.t.Reserve(now, waitable, throttle.WaitsOn)
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

// Process is a process that waits for a pod, in the gate or in the waiting room.
type Process struct {
	Ticket
	Outlook Outlook         // when it came
	Gone    <-chan struct{} // closed when its container is removed or replaced; nil for a container that the runtime did not report, and in the room
	Leave   func()          // ends the wait. It must be called once
}

// Outlook is what ends the wait of a process, and its forecast, at one moment. A channel is closed when what stands before
// it changes.
type Outlook struct {
	State    throttle.State // of the ticket
	Reason   reasons.Reason // for State; empty while the ticket waits
	Ends     Ends
	Changed  <-chan struct{}
	Forecast Forecast
	Moved    <-chan struct{}
}

// Look returns the outlook of the process now, which can wait until the deadline.
func (p Process) Look(deadline time.Time) Outlook {
	p.s.lock()
	defer p.s.unlock()
	return p.look(deadline)
}

func (p Process) look(deadline time.Time) Outlook {
	l := &p.s.ledger
	o := Outlook{Ends: l.ends(), Changed: l.node.changed, Forecast: l.board.forecast(p.UID(), deadline), Moved: l.board.moved}
	o.State, o.Reason = p.t.Status()
	return o
}

// comes makes a process of a ticket. waits reports whether the pod starts when its ticket is admitted.
func (s *Starts) comes(now time.Time, t *throttle.Ticket, gone <-chan struct{}, deadline time.Time, waits bool) Process {
	p := Process{Ticket: Ticket{s, t}, Gone: gone, Leave: func() {}}
	if waits {
		t.Wait(now)
		p.Leave = p.stopWaiting
	}
	p.Outlook = p.look(deadline)
	return p
}

// EnterRoom adds the pod of a process in the waiting room to the queue. waits is false if the pod is exempt. since is when
// it began to wait, deadline when its process can wait no longer, or zero if that is not known. early reports whether the
// process leaves when the pod has a reservation, not when its turn has come. pod is what the pod watch knows.
func (s *Starts) EnterRoom(now time.Time, who Identity, pod podwatch.Pod, since, deadline time.Time, early bool) (process Process, waits bool) {
	request := throttle.Request{Arrived: since}
	if pod.IsKnown() {
		request.Profile = s.profile(pod, false)
	}
	p := s.lockPod(now, subject{Identity: who, facts: pod.Facts})
	defer s.unlock()
	if !p.reported {
		p.Identity = who
	}
	if s.ledger.isExempt(p, pod) {
		return Process{}, false
	}
	return s.comes(now, s.ledger.join(now, p, pod, request), nil, deadline, !early), true
}

// EnterGate returns the process of a hook. since is when it began to wait, deadline when it can wait no longer, or zero if
// that is not known. A hook that outlived an earlier daemon gets back its place in the queue; if its pod is exempt by now, it
// starts at once. While the node shuts down or is short of a resource, a hook that has to wait takes no slot.
func (s *Starts) EnterGate(now time.Time, who Identity, containerID string, since, deadline time.Time) Process {
	pod := s.Known(who.UID)
	p := s.lockPod(now, subject{Identity: who, facts: pod.Facts})
	defer s.unlock()
	p.reported = true
	var gone <-chan struct{}
	repeats := 0
	if c := p.containers[containerID]; c != nil {
		gone, repeats = c.gone, p.exits[c.name].repeats
		if since.IsZero() || since.After(c.made) { // the wall clock was set back: the container would not be of this start
			since = c.made
		}
	}
	if state, reason := p.ticket.Status(); p.ticket == nil || state == throttle.Gone && reason != reasons.Deleted {
		s.ledger.join(now, p, pod, throttle.Request{Arrived: since, Repeats: repeats})
		if s.ledger.isExempt(p, pod) {
			p.ticket.StartExempt(now)
		}
	}
	ends := s.ledger.ends()
	waits := !ends.Shutdown && !ends.Pressure
	if waits {
		s.ledger.hooks.isBack(containerID)
	}
	return s.comes(now, p.ticket, gone, deadline, waits)
}
