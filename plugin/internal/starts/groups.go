package starts

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/pods"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// subject is what policies ask of a pod: what the pod watch took, and until it has,
// what the runtime tells, which is labels and CPU.
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

// regroup takes over what the pod watch tells of a pod.
func (s *Starts) regroup(now time.Time, pod podwatch.Pod, deleted bool) {
	switch {
	case deleted && !pod.Static:
		return // it is forgotten with its record
	case deleted && s.Ledger.forgetMirror(now, pod.UID):
		return
	case pod.Terminal():
		s.Policies.Finished(now, pod.UID)
		return
	}
	if s.Ledger.countRunning(now, pod.UID, pod) {
		return
	}
	p := pods.Pod{UID: pod.UID, Namespace: pod.Namespace}
	s.Ledger.Read(func(b *pods.Book) {
		if recorded, ok := b.Get(pod.UID); ok {
			p = recorded
		}
	})
	s.Policies.See(now, subject(p, pod))
}

// countRunning has a pod counted among those that run if one of its containers does,
// and reports whether one does. A start that went on in the mode Shadow counts
// when its turn has come. s.Ledger.mu is held until it is counted: its end must not be told before.
func (l *Ledger) countRunning(now time.Time, uid string, pod podwatch.Pod) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, recorded := l.book.Get(uid)
	if _, runs := l.book.Youngest(uid); !recorded || !runs || pod.Terminal() {
		return false
	}
	if sh := l.shadows[uid]; sh != nil {
		if state, _ := sh.ticket.Status(); state == throttle.Waiting {
			return false
		}
	}
	run := l.book.Progress(uid, time.Time{}, pod)
	l.policies.Runs(now, subject(p, pod), pod.ContainersReady && pod.Describes(run.IDs))
	return true
}

// forgetMirror drops what is kept of a static pod whose mirror was deleted, where the
// runtime has nothing of it any more; else that goes with its sandbox.
func (l *Ledger) forgetMirror(now time.Time, uid string) (forgotten bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, recorded := l.book.Get(uid); recorded {
		return false
	}
	l.policies.Forget(now, uid)
	return true
}
