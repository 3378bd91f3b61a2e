package starts

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/pods"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// ends finds out when starts are over. It uses the kubelet's report. Without one it uses the node's own signs: every
// container has run for some time, and the pod is quiet.
type ends struct{ s *Starts }

// podChanged judges the start of a pod that changed.
func (e *ends) podChanged(now time.Time, pod podwatch.Pod) {
	t := e.s.o.Limiter.Lookup(pod.UID)
	switch {
	case t == nil:
		return
	case pod.Deleting:
		t.End(now, reasons.Deleted)
		return
	}
	v, _ := e.s.View(now, pod.UID)
	e.s.updateProfile(now, pod, v.Repeats)
	switch v.State {
	case throttle.Waiting:
		e.judgeWaiting(now, t, v, pod)
	case throttle.Starting:
		if again := e.judgeStarting(now, t, v, pod); !again.IsZero() {
			e.s.Wake()
		}
	}
}

// judgeWaiting updates the priority of a pod that waits, and whether it is exempt. The pod may have joined
// before the watch knew it.
func (e *ends) judgeWaiting(now time.Time, t *throttle.Ticket, v throttle.TicketView, pod podwatch.Pod) {
	if _, ok := e.s.Ledger.Shadowed(t); ok {
		// It continued at once, and may be over while its ticket still waits.
		if reason, since, _ := e.howItEnded(now, v, pod); reason != "" {
			e.s.Ledger.noteOver(t, since, reason)
		}
	} else if pod.Terminal() {
		t.End(now, terminal(pod))
		return
	}
	var p pods.Pod
	var recorded bool
	e.s.Ledger.Read(func(b *pods.Book) { p, recorded = b.Get(pod.UID) })
	if recorded && pods.Exempt(e.s.config.Load().Spec.Exemptions, p, pod, true) {
		t.StartExempt(now)
		return
	}
	e.s.o.Limiter.SetPriority(now, pod.UID, pod.Priority, pod.ActiveDeadline/10)
}

// judgeAllWaiting judges all pods that wait, because other pods may be exempt now.
func (e *ends) judgeAllWaiting(now time.Time) {
	for _, v := range e.s.o.Limiter.Snapshot(now).Waiting {
		t := e.s.o.Limiter.Lookup(v.UID)
		if pod, known := e.s.Known(v.UID); known && t != nil {
			e.judgeWaiting(now, t, v, pod)
		}
	}
}

// judgeStarting ends the slot of a pod that has started, by the kubelet's report. It returns when to judge again;
// zero: when the pod changes.
func (e *ends) judgeStarting(now time.Time, t *throttle.Ticket, v throttle.TicketView, pod podwatch.Pod) (again time.Time) {
	reason, since, again := e.howItEnded(now, v, pod)
	if reason == "" {
		return again
	}
	return e.endStart(now, t, v.Admitted, reason, since)
}

// endStart ends a start that was admitted and was over at the given times. In the mode Shadow the pod started before its
// ticket was admitted. Then the ticket keeps its slot for as long as the real start took, and endStart returns when that
// is over.
func (e *ends) endStart(now time.Time, t *throttle.Ticket, admitted time.Time, reason reasons.Reason, over time.Time) (again time.Time) {
	if took, ok := e.s.Ledger.noteOver(t, over, reason); ok {
		if until := admitted.Add(took); now.Before(until) {
			return until
		}
	}
	t.End(now, reason)
	return time.Time{}
}

// howItEnded returns how, and since when, the start of a pod is over. With an empty reason it is not over, and
// again is when to judge it again, even without a change; zero: never.
func (e *ends) howItEnded(now time.Time, v throttle.TicketView, pod podwatch.Pod) (reason reasons.Reason, since, again time.Time) {
	switch {
	case pod.Deleting:
		return reasons.Deleted, now, time.Time{}
	case pod.Terminal():
		return terminal(pod), now, time.Time{}
	}
	var run pods.Progress
	e.s.Ledger.Read(func(b *pods.Book) { run = b.Progress(v.UID, v.Arrived, pod) })
	if pod.CrashLooping && run.Failed {
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
	settled := run.Youngest.Add(e.s.config.Load().Spec.GetSettleTime())
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

// review judges every start under way, and returns the time of the next review; zero: none is needed before
// something changes or is measured. quiet reports whether a pod was quiet in the last measurements. Only the loop calls it.
func (e *ends) review(now time.Time, starting map[string]struct{}, quiet func(uid string) bool) (next time.Time) {
	for uid := range starting {
		next = sooner(next, e.reviewOne(now, uid, quiet))
	}
	return next
}

// reviewOne is review of one start. A panic does not affect the others.
func (e *ends) reviewOne(now time.Time, uid string, quiet func(string) bool) (next time.Time) {
	t := e.s.o.Limiter.Lookup(uid)
	if t == nil {
		return time.Time{}
	}
	defer e.s.o.Observer.CaughtPod("review", uid, t.Name())
	v, _ := e.s.View(now, uid)
	if e.s.o.Pods != nil && e.s.o.Pods.Healthy() {
		if pod, ok := e.s.o.Pods.Get(uid); ok {
			return e.judgeStarting(now, t, v, pod)
		}
	}
	e.judgeBySigns(now, t, v, quiet)
	return time.Time{}
}

// judgeBySigns ends the slot of a pod that has started by the last measurement of the node's own signs.
func (e *ends) judgeBySigns(now time.Time, t *throttle.Ticket, v throttle.TicketView, quiet func(string) bool) {
	var run pods.Progress
	var ended bool // all its containers have ended, and none was started again
	e.s.Ledger.Read(func(b *pods.Book) {
		run = b.Progress(v.UID, v.Arrived, podwatch.Pod{})
		ended = len(run.IDs) == 0 && b.ExitedSince(v.UID, "", v.Admitted) && !b.ExitedSince(v.UID, "", now.Add(-e.s.o.Timing.Quiet.Window))
	})
	switch {
	case ended:
		t.End(now, reasons.Completed)
	case run.Begun && now.Sub(run.Youngest) >= e.s.o.Timing.RunFor && quiet(t.UID()):
		t.End(now, reasons.Inferred)
	}
}
