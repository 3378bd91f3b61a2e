package starts

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// PodChanged handles a change of a pod in the API server. deleted reports whether the pod was deleted.
func (s *Starts) PodChanged(now time.Time, pod podwatch.Pod, deleted bool) {
	if deleted && !pod.Static { // of a static pod, only the mirror was deleted
		s.podDeleted(now, pod.UID)
		return
	}
	p := s.lockPod(now, subject{Identity: Identity{UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name}, facts: pod.Facts})
	defer s.unlock()
	l := &s.ledger
	joined := !p.known && p.lives() // before the watch knew the pod
	p.known = !deleted && !pod.Terminal()
	l.recount(now, p, pod)
	again := l.judge(now, p, pod)
	if joined {
		s.news.Store(true)
	}
	l.effects.wakes = joined || !again.IsZero() || l.after.wakes()
	if pod.Terminal() || deleted && !p.reported { // the pod watch forgets it, too; where the runtime has it, its sandbox is left
		l.forget(now, p)
	}
}

// podDeleted forgets a pod that was deleted from the API server, and ends its start. Whatever was left of it is gone:
// kubelet has removed it, and the runtime does not report the removal of sandboxes that are older than itself.
func (s *Starts) podDeleted(now time.Time, uid string) {
	s.lock()
	defer s.unlock()
	l := &s.ledger
	l.effects.forgotten = append(l.effects.forgotten, uid)
	if p := l.pods[uid]; p != nil {
		p.end(now, reasons.Deleted)
		for id := range p.containers {
			p.remove(id)
		}
		delete(l.pods, uid)
		l.limiter.Finished(now, uid)
	}
}

// recount updates how a pod counts in its groups, by what the pod watch knows now.
func (l *ledger) recount(now time.Time, p *Pod, pod podwatch.Pod) {
	switch {
	case pod.Terminal():
		l.limiter.Finished(now, p.UID)
	case !l.countRunning(now, p, pod):
		l.limiter.NotReady(now, p.UID)
	}
}

// countRunning counts a pod among those that run if one of its containers does, by the runtime or by kubelet's
// report, and reports whether it does. A start that continued in the mode Shadow counts when its turn has come. A pod that
// the watch does not know counts as ready once its start is over.
func (l *ledger) countRunning(now time.Time, p *Pod, pod podwatch.Pod) bool {
	run := p.progress(time.Time{}, pod)
	if len(run.IDs) == 0 || pod.Terminal() {
		return false
	}
	if p.shadow != nil {
		if state, _ := p.shadow.ticket.Status(); state == throttle.Waiting {
			return false
		}
	}
	ready := pod.ContainersReady && pod.Describes(run.IDs)
	if !pod.IsKnown() { // nothing reports whether it is ready
		ready = p.seemsReady()
	}
	l.limiter.SetGroups(now, throttle.PodGroups{UID: p.UID, Groups: p.matched.groups, Running: true, Ready: ready})
	return true
}

// seemsReady reports whether the start of a pod that runs is over, and was not stuck.
func (p *Pod) seemsReady() bool {
	state, reason := p.ticket.Status()
	return state != throttle.Waiting && state != throttle.Starting && reason != reasons.Stuck
}

// judge judges the start of a pod by what the pod watch knows now. It returns when to judge the start again even without
// a change, or zero if that is not needed.
func (l *ledger) judge(now time.Time, p *Pod, pod podwatch.Pod) (again time.Time) {
	switch state, _ := p.ticket.Status(); {
	case p.ticket == nil:
	case pod.Deleting:
		p.end(now, reasons.Deleted)
	case p.endTry(now, pod, p.allUndone(pod), false):
	case state == throttle.Waiting:
		l.judgeWaiting(now, p, pod)
	case state == throttle.Starting:
		return l.judgeStarting(now, p, pod)
	}
	return time.Time{}
}

// judgeWaiting updates the priority of a pod that waits, and whether it is exempt. The pod may have joined
// before the watch knew it.
func (l *ledger) judgeWaiting(now time.Time, p *Pod, pod podwatch.Pod) {
	t := p.ticket
	if sh := p.inShadow(); sh != nil {
		// It continued at once, and may be over while its ticket still waits.
		reason, since, again := l.howItEnded(now, p, pod)
		if sh.settles = again; reason != "" {
			sh.end(since, reason)
		}
	} else if pod.Terminal() {
		t.End(now, terminal(pod))
		return
	}
	if l.isExempt(p, pod) {
		t.StartExempt(now)
		return
	}
	t.SetPriority(now, pod.Priority, pod.ActiveDeadline/10)
	if pod.CannotMake && p.sandbox != "" && !p.progress(t.Arrived(), pod).Making {
		t.Prepare(now, false)
	}
}

// judgeStarting ends the slot of a pod that has started, by kubelet's report. It returns when to judge again, or zero if
// the slot has ended or the pod has to change first. In the mode Shadow the pod started before its ticket was admitted.
// Then the ticket keeps its slot for as long as the real start took.
func (l *ledger) judgeStarting(now time.Time, p *Pod, pod podwatch.Pod) (again time.Time) {
	reason, since, again := l.howItEnded(now, p, pod)
	sh := p.inShadow()
	if sh != nil && sh.ended != "" {
		reason = sh.ended
	}
	if reason == "" {
		return again
	}
	if pod.Terminal() {
		l.limiter.Finished(now, pod.UID) // in the mode Shadow, it counts since its turn came, after its end
	}
	if sh != nil {
		if until := p.ticket.Admitted().Add(sh.end(since, reason)); now.Before(until) {
			return until
		}
	}
	p.end(now, reason)
	return time.Time{}
}

// review judges a start by what the pod watch knows now, without a change of the pod. It returns when to judge it again,
// or zero. A panic does not affect the others.
func (s *Starts) review(now time.Time, uid, name string) (again time.Time) {
	defer s.o.Observer.CaughtPod("review", uid, name)
	pod := s.Known(uid)
	s.lock()
	defer s.unlock()
	if p := s.ledger.pods[uid]; p != nil && pod.IsKnown() {
		again = s.ledger.judge(now, p, pod)
	}
	return again
}

// end ends the pod's latest start for a reason, if it has not ended.
func (p *Pod) end(now time.Time, reason reasons.Reason) {
	if p.ticket != nil {
		p.ticket.End(now, reason)
	}
}

// howItEnded returns how, and since when, the start of a pod is over: a pod with probes when all containers are ready,
// one without when all have run for the settle time. With an empty reason it is not over, and again is when to judge it
// again even without a change, or zero if that is not needed.
func (l *ledger) howItEnded(now time.Time, p *Pod, pod podwatch.Pod) (reason reasons.Reason, since, again time.Time) {
	switch {
	case pod.Deleting:
		return reasons.Deleted, now, time.Time{}
	case pod.Terminal():
		return terminal(pod), now, time.Time{}
	}
	run := p.progress(p.ticket.Arrived(), pod)
	if pod.CannotMake && len(run.IDs) == 0 && !run.Making && !p.exitedSince(p.ticket.Admitted()) {
		return reasons.Abandoned, now, time.Time{} // it was admitted before its image was pulled
	}
	if run.CrashLoops {
		return reasons.CrashLoop, now, time.Time{}
	}
	// A report about earlier containers does not describe this start.
	if !run.Begun || !pod.Describes(run.IDs) {
		return "", time.Time{}, time.Time{}
	}
	if pod.Probed && pod.ContainersReady {
		return reasons.Ready, now, time.Time{}
	}
	if pod.Probed || !pod.AllRunning {
		return "", time.Time{}, time.Time{}
	}
	settled := run.Youngest.Add(l.config.Load().Spec.GetSettleTime())
	if now.Before(settled) {
		return "", time.Time{}, settled
	}
	return reasons.Settled, settled, time.Time{}
}

func terminal(pod podwatch.Pod) reasons.Reason {
	if pod.Phase == corev1.PodSucceeded {
		return reasons.Completed
	}
	return reasons.Failed
}

// judgeBySigns judges a start under way without a report of kubelet, by the node's own signs: all containers have run
// for some time, and the pod is quiet, or all have ended, and none was started again. quiet reports whether the pod was
// quiet in the last measurements. pod is what the pod watch knew last, or the zero value: an old report still tells
// init containers, which end nothing, from those of the app.
func (s *Starts) judgeBySigns(now time.Time, t *throttle.Ticket, pod podwatch.Pod, quiet bool) {
	s.lock()
	defer s.unlock()
	p, timing := s.ledger.pods[t.UID()], s.o.Timing
	if p == nil {
		return
	}
	run := p.progress(t.Arrived(), podwatch.Pod{})
	ended := len(run.IDs) == 0 && p.exitedSince(t.Admitted())
	if len(pod.Containers) > 0 {
		ended, run.Begun = p.allExited(t.Admitted(), pod), run.Begun && pod.HasApp(run.IDs)
	}
	switch {
	case ended && !p.exitedSince(now.Add(-timing.Quiet.Window)):
		t.End(now, reasons.Completed)
	case run.Begun && now.Sub(run.Youngest) >= timing.RunFor && quiet:
		t.End(now, reasons.Inferred)
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
	if state, _ := p.ticket.Status(); state != throttle.Starting {
		return false
	}
	p.end(now, reason)
	return true
}

// Progress is how far a start is. The zero value: it has not begun.
type Progress struct {
	IDs      map[string]string // the IDs of the running containers, by name
	Youngest time.Time         // when the last of them began to run
	Made     time.Time         // when the daemon first knew that container
	Begun    bool              // one of them was made for this start
	// CrashLoops: kubelet holds back one that was made for this start and failed, but for those that expire noted.
	CrashLoops bool
	Making     bool // one in the present sandbox is in creation: a report that kubelet cannot make one is older
}

// progress returns how far the start of the pod is. joined is when it joined the queue, pod kubelet's report of it. A
// container has failed only if the report is about that container. A container that runs
// by the report counts as running: a runtime that was killed may not report its start. An ephemeral container is no part of
// a start.
func (p *Pod) progress(joined time.Time, pod podwatch.Pod) Progress {
	run := Progress{IDs: map[string]string{}}
	for _, c := range p.containers {
		if p.replaced(c) || pod.KindOf(c.name) == podwatch.Ephemeral {
			continue
		}
		ofStart := !c.made.Before(joined)
		reported := pod.Containers[c.name]
		since := c.since
		if !c.running {
			if c.exited || !reported.Running || c.id != reported.ID {
				run.CrashLoops = run.CrashLoops || (ofStart && !c.expired && c.id == reported.ID && reported.CrashLooping)
				run.Making = run.Making || c.inCreation() && p.inSandbox(c)
				continue
			}
			since = c.made
		}
		run.IDs[c.name] = c.id
		run.Begun = run.Begun || ofStart
		if since.After(run.Youngest) {
			run.Youngest, run.Made = since, c.made
		}
	}
	return run
}

// replaced reports whether a later container has the same name. A runtime that was killed may list both as running.
func (p *Pod) replaced(c *container) bool {
	for _, other := range p.containers {
		if other.name == c.name && other.made.After(c.made) {
			return true
		}
	}
	return false
}

// exitedSince reports whether a container exited in the pod's present sandbox at or after t.
func (p *Pod) exitedSince(t time.Time) bool {
	for _, e := range p.exits {
		if !e.last.Before(t) {
			return true
		}
	}
	return false
}

// allExited reports whether all app containers of the pod exited at or after t, and none of them runs. pod is kubelet's
// report. The result is false if the report has no app container.
func (p *Pod) allExited(t time.Time, pod podwatch.Pod) bool {
	apps := 0
	for name, c := range pod.Containers {
		if c.Kind != podwatch.App {
			continue
		}
		apps++
		if e, exited := p.exits[name]; !exited || e.last.Before(t) || p.runs(name) {
			return false
		}
	}
	return apps > 0
}

// runs reports whether a container of this name runs.
func (p *Pod) runs(name string) bool {
	for _, c := range p.containers {
		if c.running && c.name == name {
			return true
		}
	}
	return false
}

// allUndone reports whether the latest try to start the pod is over although no process of it ran (its container was
// rejected, undone, or could not be started), and no container runs or is in creation. pod is kubelet's report. The end of
// an init container is no such end, and an ephemeral container does not count.
func (p *Pod) allUndone(pod podwatch.Pod) bool {
	counts := func(name string) bool { return pod.KindOf(name) != podwatch.Ephemeral }
	undone := p.undone != "" && counts(p.undone)
	for _, c := range p.containers {
		switch reported := pod.Containers[c.name]; {
		case !counts(c.name):
		case c.running:
			return false
		case !c.inCreation():
		case reported.StartFailed && reported.ID == c.id:
			undone = true
		default:
			return false
		}
	}
	return undone
}
