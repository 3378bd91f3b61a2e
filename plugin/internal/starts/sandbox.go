package starts

import (
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// NewSandbox is a sandbox that the runtime is about to make.
type NewSandbox struct {
	Sandbox   *api.PodSandbox
	Pod       podwatch.Pod // what the pod watch knows of its pod
	Refusable bool         // it may be refused
	SlotFirst bool         // if it may be refused, its pod gets it only together with a slot
	NoGate    string       // why no hook may wait in it; empty if one may
}

// Sandbox adds the pod of a sandbox to the queue, and asks for a reservation, or for a slot. It refuses the sandbox
// only in the mode Enforce. since is when a pod that is refused began to wait.
func (s *Starts) Sandbox(now time.Time, n NewSandbox) (d throttle.Decision, since time.Time) {
	var request throttle.Request
	if n.Pod.IsKnown() {
		request.Profile = s.profile(n.Pod, false)
	}
	p := s.lockPod(now, subjectOf(n.Sandbox, n.Pod))
	defer s.unlock()
	l, ends := &s.ledger, s.ledger.ends()
	refusable, shutdown := n.Refusable && ends.HoldsNone == "", ends.Shutdown && ends.HoldsNone == ""
	if !l.isExempt(p, n.Pod) {
		t := l.join(now, p, n.Pod, request)
		switch {
		case shutdown:
			d = barred(gate.NodeShutdown)
		case refusable && n.SlotFirst:
			if d = t.TryStart(now); !d.Granted {
				t.Unreserve(now) // kubelet has not pulled its images
			}
		default:
			d = t.Reserve(now, l.waitable, throttle.RetriedSoon)
		}
		if !d.Granted && refusable && (shutdown || !l.startAsLastResort(now, p, d.Reason)) {
			p.lastSandbox = "" // that it is removed says nothing of the pod
			return d, t.Since(now)
		}
		t.Prepare(now, true)
	}
	p.asks = asking{} // kubelet pulls its images
	p.setSandbox(n.Sandbox.GetId())
	p.noGate = n.NoGate
	return throttle.Decision{Granted: true}, time.Time{}
}

// join returns the ticket of a pod that starts, in its groups. request holds the details of this start. The start of a pod
// that is known to be deleted ends: nothing may report that again.
func (l *ledger) join(now time.Time, p *Pod, pod podwatch.Pod, request throttle.Request) *throttle.Ticket {
	request.UID, request.Name, request.Flow = p.UID, p.NamespacedName(), p.Namespace
	request.Priority, request.MaxWait = pod.Priority, pod.ActiveDeadline/10
	request.Groups = p.matched.groups
	if request.Arrived.IsZero() {
		request.Arrived = now // the limiter may know a later time, and a container that is made now is of this start
	}
	p.ticket = l.limiter.Join(now, request)
	if pod.Deleting {
		p.ticket.End(now, reasons.Deleted)
	}
	return p.ticket
}

// SandboxStopped handles the end of a sandbox, and ends the start of its pod. The end of a refused
// sandbox changes nothing: its pod keeps its place in the queue.
func (s *Starts) SandboxStopped(sandbox *api.PodSandbox) { s.sandboxEnded(sandbox, false) }

// SandboxRemoved handles a sandbox that was removed, and forgets its pod if nothing is left of that. Without an API
// server, which would report that the pod was deleted, the pod is gone with its latest sandbox. Another sandbox of the pod
// may be removed while the pod lives.
func (s *Starts) SandboxRemoved(sandbox *api.PodSandbox) { s.sandboxEnded(sandbox, true) }

// sandboxEnded handles the end of a sandbox. The runtime has not reported the exits of its containers yet.
func (s *Starts) sandboxEnded(sandbox *api.PodSandbox, removed bool) {
	now, uid := time.Now(), Key(sandbox)
	pod := s.Known(uid)
	s.lock()
	defer s.unlock()
	l := &s.ledger
	p := l.pods[uid]
	if p != nil && p.stopSandbox(sandbox.GetId()) {
		l.hasNoSandbox(now, p, pod)
		p.loseSandbox(now)
	}
	switch {
	case !removed:
	case p == nil:
		l.effects.forgotten = append(l.effects.forgotten, uid) // others may know of it
	default:
		if s.o.Pods == nil && p.lastSandbox == sandbox.GetId() {
			p.end(now, reasons.SandboxGone)
		}
		l.forget(now, p)
	}
}

// hasNoSandbox notes that a sandbox of a pod is gone with all that ran in it. A pod that has or gets another one has not
// finished, and still counts as running.
func (l *ledger) hasNoSandbox(now time.Time, p *Pod, pod podwatch.Pod) {
	if p.sandbox != "" || pod.GetsSandboxes() {
		l.limiter.NotReady(now, p.UID)
	} else {
		l.limiter.Finished(now, p.UID)
	}
}

// loseSandbox ends a start whose sandbox is gone. A pod that waits keeps its place in the queue.
func (p *Pod) loseSandbox(now time.Time) {
	switch state, _ := p.ticket.Status(); state {
	case throttle.Starting:
		p.end(now, reasons.SandboxGone)
	case throttle.Waiting:
		p.ticket.Unreserve(now)
	}
}
