package plugin

import (
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// subject is what policies ask of a pod: what the pod watch took, and until it has,
// what the runtime tells, which is labels and CPU.
func subject(r *record, pod podwatch.Pod) policies.Pod {
	s := policies.Pod{UID: r.uid, Namespace: r.namespace}
	if pod.Facts != nil {
		s.Facts = *pod.Facts
		return s
	}
	s.Facts.Labels = r.labels
	if r.milliCPU > 0 {
		s.Facts.Requests = map[string]int64{"cpu": r.milliCPU}
	}
	return s
}

// milliCPU gives the CPU that a pod requests, in thousandths of a core, of which kubelet
// makes the weight of the pod's cgroup; 0: it requests none, or nobody says.
func milliCPU(pod *api.PodSandbox) int64 {
	const perCore, least = 1024, 2 // kubelet's weight of one core, and of no request
	shares := int64(pod.GetLinux().GetPodResources().GetCpu().GetShares().GetValue())
	if shares <= least {
		return 0
	}
	return (shares*1000 + perCore - 1) / perCore
}

// watched gives what the pod watch knows of a pod; nothing where there is none.
func (p *pacer) watched(uid string) (podwatch.Pod, bool) {
	if p.pods == nil {
		return podwatch.Pod{}, false
	}
	return p.pods.Get(uid)
}

// joinGroupedLocked gives the ticket of a pod that starts, in its groups. p.mu must be
// held.
func (p *pacer) joinGroupedLocked(now time.Time, r *record, pod podwatch.Pod, request throttle.Request) *throttle.Ticket {
	return p.keeper.Join(now, subject(r, pod), func(groups []throttle.Membership) *throttle.Ticket {
		request.Groups = groups
		return p.limiter.Join(now, request)
	})
}

// regroup takes over what the pod watch tells of a pod.
func (p *pacer) regroup(now time.Time, pod podwatch.Pod, deleted bool) {
	switch {
	case deleted && !pod.Static:
		return // it is forgotten with its record
	case deleted && p.forgetMirror(now, pod.UID):
		return
	case pod.Terminal():
		p.keeper.Finished(now, pod.UID)
		return
	}
	if p.countRunning(now, pod.UID, pod) {
		return
	}
	facts := startpolicy.Facts{}
	if pod.Facts != nil {
		facts = *pod.Facts
	} else if r, known := p.recordCopy(pod.UID); known {
		p.keeper.See(now, subject(&r, pod))
		return
	}
	p.keeper.See(now, policies.Pod{UID: pod.UID, Namespace: pod.Namespace, Facts: facts})
}

// recordCopy gives a copy of a pod's record, of which only what never changes may be
// read.
func (p *pacer) recordCopy(uid string) (record, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.records[uid]; r != nil {
		return *r, true
	}
	return record{}, false
}

// countRunning has a pod counted among those that run if one of its containers does,
// and tells whether one does. A start that went on in the mode Shadow counts
// when its turn has come.
func (p *pacer) countRunning(now time.Time, uid string, pod podwatch.Pod) bool {
	run, counts := p.runOf(uid, pod)
	if !counts {
		return false
	}
	ready := pod.ContainersReady && pod.Describes(run.ids)
	p.mu.Lock()
	defer p.mu.Unlock() // until it is counted: its end must not be told before
	r := p.records[uid]
	if r == nil || r.youngest() == nil {
		return false
	}
	p.keeper.Runs(now, subject(r, pod), ready)
	return true
}

// runOf tells whether a pod counts among those that run, and how far its containers are.
func (p *pacer) runOf(uid string, pod podwatch.Pod) (run progress, counts bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.records[uid]
	if r == nil || pod.Terminal() || r.youngest() == nil {
		return progress{}, false
	}
	if r.shadow != nil {
		if state, _ := r.shadow.ticket.Status(); state == throttle.Waiting {
			return progress{}, false
		}
	}
	return r.progress(time.Time{}, pod), true
}

// forgetMirror drops what is kept of a static pod whose mirror was deleted, where the
// runtime has nothing of it any more; else that goes with its sandbox.
func (p *pacer) forgetMirror(now time.Time, uid string) (forgotten bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.records[uid] != nil {
		return false
	}
	p.keeper.Forget(now, uid)
	return true
}
