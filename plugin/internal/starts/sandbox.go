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
	Pod       podwatch.Pod // what the pod watch knows of its pod, if Known
	Known     bool
	Refusable bool   // it may be refused
	SlotFirst bool   // if it may be refused, its pod gets it only together with a slot
	NoGate    string // why no hook may wait in it; empty if one may
}

// Sandbox adds the pod of a sandbox to the queue, and asks for a reservation, or for a slot. It refuses the sandbox
// only in the mode Enforce. since is when a pod that is refused began to wait.
func (r *RuntimeEvents) Sandbox(now time.Time, s NewSandbox) (d throttle.Decision, since time.Time) {
	var request throttle.Request
	if s.Known {
		request.Profile = r.s.profile(s.Pod, false)
	}
	selected := r.s.After.selecting(s.Sandbox)
	refusable, shutdown := s.Refusable && r.s.Valve.Enforces(), r.s.Valve.RefusesWaits()
	l := r.s.Ledger
	p := l.lockMatching(now, subjectOf(s.Sandbox, s.Pod))[0]
	defer l.unlock()
	p.update(s.Sandbox)
	p.selected = selected
	if !isExempt(l.entries.config.Load().Spec.Exemptions, p.Identity, s.Pod, s.Known) {
		t := l.entries.join(now, p, s.Pod, request)
		switch {
		case shutdown:
			d = barred(gate.NodeShutdown)
		case refusable && s.SlotFirst:
			d = startBeforeSandbox(now, t)
		default:
			d = t.Reserve(now, l.entries.waitable, throttle.RetriedSoon)
		}
		if !d.Admitted && refusable && (shutdown || !l.entries.startAsLastResort(now, p, d.Reason)) {
			p.lastSandbox = "" // that it is removed says nothing of the pod
			return d, t.Since(now)
		}
		t.Prepare(now, true)
	}
	p.asks = asking{} // kubelet pulls its images
	p.setSandbox(s.Sandbox.GetId())
	p.noGate = s.NoGate
	return throttle.Decision{Admitted: true}, time.Time{}
}

// startBeforeSandbox asks for a slot for a pod that has no sandbox, so that kubelet has not pulled its images.
func startBeforeSandbox(now time.Time, t *throttle.Ticket) throttle.Decision {
	d := t.TryStart(now)
	if !d.Admitted {
		t.Unreserve(now)
	}
	return d
}

// MayHold reports whether a pod that the pod watch does not know yet may have to wait, by its sandbox alone.
func (s *Starts) MayHold(sandbox *api.PodSandbox) bool {
	return s.Valve.Enforces() && !isExempt(s.config.Load().Spec.Exemptions, identify(sandbox), podwatch.Pod{}, false)
}

// join returns the ticket of a pod that starts, in its groups. request holds the details of this start. The start of a pod
// that is known to be deleted ends: nothing may report that again.
func (e *entries) join(now time.Time, p *Pod, pod podwatch.Pod, request throttle.Request) *throttle.Ticket {
	request.UID, request.Name, request.Flow = p.UID, p.NamespacedName(), p.Namespace
	request.Priority, request.MaxWait = pod.Priority, pod.ActiveDeadline/10
	request.Groups = p.matched.groups
	if request.Arrived.IsZero() {
		request.Arrived = now // the limiter may know a later time, and a container that is made now is of this start
	}
	p.ticket = e.limiter.Join(now, request)
	if pod.Deleting {
		p.ticket.End(now, reasons.Deleted)
	}
	return p.ticket
}

// SandboxStopped handles the end of a sandbox, and ends the start of its pod. The end of a refused
// sandbox changes nothing: its pod keeps its place in the queue.
func (r *RuntimeEvents) SandboxStopped(sandbox *api.PodSandbox) {
	pod, _ := r.s.Known(Key(sandbox))
	r.s.Ledger.endSandbox(time.Now(), Key(sandbox), sandbox.GetId(), pod, false)
}

// SandboxRemoved handles a sandbox that was removed. Without an API server, which would report that the pod was
// deleted, the pod is gone with its latest sandbox. Another sandbox of the pod may be removed while the pod lives.
func (r *RuntimeEvents) SandboxRemoved(sandbox *api.PodSandbox) {
	uid := Key(sandbox)
	pod, _ := r.s.Known(uid)
	r.s.Ledger.endSandbox(time.Now(), uid, sandbox.GetId(), pod, r.s.o.Pods == nil)
	r.s.forgetEmpty(uid)
}

// endSandbox handles the end of a sandbox. The runtime has not reported the exits of its containers yet. pod is what the
// pod watch knows of the pod: one that gets another sandbox has not finished, and still counts as running. gone reports
// whether the pod is gone if this was its latest sandbox.
func (l *Ledger) endSandbox(now time.Time, uid, sandbox string, pod podwatch.Pod, gone bool) {
	l.lock()
	defer l.unlock()
	p := l.entries.pods[uid]
	if p == nil {
		return
	}
	if p.stopSandbox(sandbox) {
		if pod.GetsSandboxes() {
			l.entries.limiter.NotReady(now, uid)
		} else {
			l.entries.limiter.Finished(now, uid)
		}
		p.sandboxEnded(now)
	}
	if gone && p.lastSandbox == sandbox {
		p.end(now, reasons.SandboxGone)
	}
}

// sandboxEnded ends a start whose sandbox is gone. A pod that waits keeps its place in the queue.
func (p *Pod) sandboxEnded(now time.Time) {
	switch state, _ := p.start(); state {
	case throttle.Starting:
		p.end(now, reasons.SandboxGone)
	case throttle.Waiting:
		p.ticket.Unreserve(now)
	}
}

// forgetEmpty forgets a pod if nothing is left of it.
func (s *Starts) forgetEmpty(uid string) {
	_, known := s.Known(uid)
	if s.Ledger.forget(time.Now(), uid, false, known) {
		s.forgotten(uid)
	}
}

// forget forgets a pod, as the entries do.
func (l *Ledger) forget(now time.Time, uid string, deleted, known bool) bool {
	l.lock()
	defer l.unlock()
	return l.entries.forget(now, l.entries.pods[uid], deleted, known)
}
