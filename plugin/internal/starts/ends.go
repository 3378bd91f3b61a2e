package starts

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// podChanged updates the groups of a pod, and judges its start, by what the pod watch knows now. mirror reports whether
// the mirror of a static pod was deleted. It returns the pod's ticket, or nil if it has none or its start has ended, and
// whether the loop has to do a round because of the change.
func (l *Ledger) podChanged(now time.Time, pod podwatch.Pod, mirror bool) (t *throttle.Ticket, wakes bool) {
	p := l.lockMatching(now, subject{Identity: Identity{UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name}, facts: pod.Facts})[0]
	defer l.unlock()
	l.entries.recount(now, p, pod, mirror)
	t, again := l.entries.judge(now, p, pod)
	return t, !again.IsZero() || l.entries.after.wakes()
}

// judge judges the start of a pod by what the pod watch knows now. It returns the pod's ticket, or nil if it has none or
// its start has ended, and when to judge the start again even without a change, or zero if that is not needed.
func (e *entries) judge(now time.Time, p *Pod, pod podwatch.Pod) (t *throttle.Ticket, again time.Time) {
	t = p.ticket
	state, _ := p.start()
	switch {
	case t == nil:
	case pod.Deleting:
		t.End(now, reasons.Deleted)
	case p.endTry(now, pod, p.allUndone(pod), false):
	case state == throttle.Waiting:
		e.judgeWaiting(now, p, pod)
		return t, time.Time{}
	case state == throttle.Starting:
		if over, again := e.judgeStarting(now, p, pod); !over {
			return t, again
		}
	}
	return nil, time.Time{}
}

// judgeWaiting updates the priority of a pod that waits, and whether it is exempt. The pod may have joined
// before the watch knew it.
func (e *entries) judgeWaiting(now time.Time, p *Pod, pod podwatch.Pod) {
	t := p.ticket
	if sh := p.inShadow(); sh != nil {
		// It continued at once, and may be over while its ticket still waits.
		reason, since, again := e.howItEnded(now, p, pod)
		if sh.settles = again; reason != "" {
			sh.end(since, reason)
		}
	} else if pod.Terminal() {
		t.End(now, terminal(pod))
		return
	}
	if isExempt(e.config.Load().Spec.Exemptions, p.Identity, pod, true) {
		t.StartExempt(now)
		return
	}
	e.limiter.SetPriority(now, pod.UID, pod.Priority, pod.ActiveDeadline/10)
	if pod.CannotMake && p.sandbox != "" && !p.progress(t.Arrived(), pod).Making {
		t.Prepare(now, false)
	}
}

// judgeStarting ends the slot of a pod that has started, by kubelet's report, and reports whether it did. Otherwise again
// is when to judge again, or zero if the pod has to change first. In the mode Shadow the pod started before its ticket
// was admitted. Then the ticket keeps its slot for as long as the real start took.
func (e *entries) judgeStarting(now time.Time, p *Pod, pod podwatch.Pod) (over bool, again time.Time) {
	reason, since, again := e.howItEnded(now, p, pod)
	sh := p.inShadow()
	if sh != nil && sh.ended != "" {
		reason = sh.ended
	}
	if reason == "" {
		return false, again
	}
	if pod.Terminal() {
		e.limiter.Finished(now, pod.UID) // in the mode Shadow, it counts since its turn came, after its end
	}
	if sh != nil {
		if until := p.ticket.Admitted().Add(sh.end(since, reason)); now.Before(until) {
			return false, until
		}
	}
	p.end(now, reason)
	return true, time.Time{}
}

// howItEnded returns how, and since when, the start of a pod is over: a pod with probes when all containers are ready,
// one without when all have run for the settle time. With an empty reason it is not over, and again is when to judge it
// again even without a change, or zero if that is not needed.
func (e *entries) howItEnded(now time.Time, p *Pod, pod podwatch.Pod) (reason reasons.Reason, since, again time.Time) {
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
	settled := run.Youngest.Add(e.config.Load().Spec.GetSettleTime())
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

// review judges a start by kubelet's report, without a change of the pod. It returns what judge does.
func (l *Ledger) review(now time.Time, pod podwatch.Pod) (again time.Time) {
	l.lock()
	defer l.unlock()
	if p := l.entries.pods[pod.UID]; p != nil {
		_, again = l.entries.judge(now, p, pod)
	}
	return again
}

// reviewSigns judges a start under way without a report of kubelet, by the node's own signs: all containers have run
// for some time, and the pod is quiet, or all have ended, and none was started again. quiet reports whether the pod was
// quiet in the last measurements. pod is what the pod watch knew last, or the zero value: an old report still tells
// init containers, which end nothing, from those of the app.
func (l *Ledger) reviewSigns(now time.Time, t *throttle.Ticket, pod podwatch.Pod, timing Timing, quiet bool) {
	l.lock()
	defer l.unlock()
	p := l.entries.pods[t.UID()]
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
