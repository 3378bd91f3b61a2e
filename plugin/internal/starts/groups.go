package starts

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/pods"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// subject returns what policies need to know of a pod: the facts that the pod watch extracted, or, until it has,
// the labels and CPU request that the runtime reported.
func subject(p pods.Pod, pod podwatch.Pod) policies.Pod {
	s := policies.Pod{UID: p.UID, Namespace: p.Namespace}
	if pod.Facts != nil {
		s.Facts = *pod.Facts
		return s
	}
	s.Facts.Labels = p.Labels
	if p.MilliCPU > 0 {
		s.Facts.Requests = map[string]int64{"cpu": p.MilliCPU}
	}
	return s
}

// regroup updates the groups of a pod by what the pod watch knows now. mirror reports whether the mirror of a
// static pod was deleted.
func (e *entries) regroup(now time.Time, pod podwatch.Pod, mirror bool) {
	p, inBook := e.book.Get(pod.UID)
	if !inBook {
		p = pods.Pod{UID: pod.UID, Namespace: pod.Namespace}
	}
	switch {
	case mirror && !inBook: // where the runtime has the pod, it is forgotten with its sandbox
		e.matcher.Forget(now, pod.UID)
	case pod.Terminal():
		e.matcher.Finished(now, pod.UID)
	case !e.countRunning(now, pod.UID, pod):
		e.matcher.Rests(now, subject(p, pod))
	}
}

// countRunning counts a pod among those that run if one of its containers does, by the runtime or by kubelet's
// report, and reports whether it does. A start that continued in the mode Shadow counts when its turn has come. A pod that
// the watch does not know counts as ready once its start is over.
func (e *entries) countRunning(now time.Time, uid string, pod podwatch.Pod) bool {
	p, inBook := e.book.Get(uid)
	run := e.book.Progress(uid, time.Time{}, pod)
	if !inBook || len(run.IDs) == 0 || pod.Terminal() {
		return false
	}
	if sh := e.shadows[uid]; sh != nil {
		if state, _ := sh.ticket.Status(); state == throttle.Waiting {
			return false
		}
	}
	ready := pod.ContainersReady && pod.Describes(run.IDs)
	if pod.UID == "" { // nothing reports whether it is ready
		ready = e.seemsReady(now, uid)
	}
	e.matcher.Runs(now, subject(p, pod), ready)
	return true
}

// seemsReady reports whether the start of a pod that runs is over, and was not stuck.
func (e *entries) seemsReady(now time.Time, uid string) bool {
	_, v := e.limiter.View(now, uid)
	return v.State != throttle.Waiting && v.State != throttle.Starting && v.Reason != reasons.Stuck
}
