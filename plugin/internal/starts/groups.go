package starts

import (
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// subject is a pod, and what is known of it that policies may ask.
type subject struct {
	Identity
	sandbox *api.PodSandbox    // nil if it is not at hand
	facts   *startpolicy.Facts // of the pod watch; nil if it has none
}

// subjectOf returns the pod of a sandbox. pod is what the pod watch knows of it, or the zero value.
func subjectOf(sandbox *api.PodSandbox, pod podwatch.Pod) subject {
	return subject{Identity: identify(sandbox), sandbox: sandbox, facts: pod.Facts}
}

// match finds the groups of the pod: by the facts of the pod watch or, until it has them, by the labels and the CPU
// request that the runtime reports.
func (s subject) match(set *policies.Set) matched {
	m := matched{Pod: policies.Pod{UID: s.UID, Namespace: s.Namespace}, unknown: s.facts == nil && s.sandbox == nil}
	if s.facts != nil {
		m.Facts = *s.facts
	} else if s.sandbox != nil {
		m.Facts.Labels = set.Needs().LabelsOf(s.sandbox.GetLabels())
		if cpu := milliCPU(s.sandbox); cpu > 0 {
			m.Facts.Requests = map[string]int64{"cpu": cpu}
		}
	}
	m.groups = set.Groups(m.Pod)
	return m
}

// milliCPU returns the CPU request of a pod in thousandths of a core, from the weight that kubelet gives its cgroup, or
// 0 if it has none or that is not known.
func milliCPU(sandbox *api.PodSandbox) int64 {
	const perCore, least = 1024, 2 // kubelet's weight of one core, and of no request
	shares := int64(sandbox.GetLinux().GetPodResources().GetCpu().GetShares().GetValue())
	if shares <= least {
		return 0
	}
	return (shares*1000 + perCore - 1) / perCore
}

// matched is what policies have to know of a pod, with its groups by those in force. The zero value: the pod was not
// matched yet.
type matched struct {
	policies.Pod
	groups  []throttle.Membership
	unknown bool // neither the runtime nor the pod watch has said what policies ask
}

func (m matched) toLimiter() throttle.PodGroups {
	return throttle.PodGroups{UID: m.UID, Groups: m.groups}
}

// put replaces the groups of a pod. A pod without news keeps its groups.
func (l *ledger) put(now time.Time, p *Pod, m matched) {
	if p.matched.UID != "" && m.unknown {
		return
	}
	p.matched, l.version = m, l.version+1
	l.limiter.SetGroups(now, m.toLimiter())
}

// regroup replaces the groups of pods, and the limits of the policies, in one step. Otherwise, a pod that waits could be
// admitted to a group that some pods have left already while others have yet to join it. Pods may be unknown by now.
func (l *ledger) regroup(now time.Time, limits map[string]throttle.GroupLimits, all []matched) {
	changed := make([]throttle.PodGroups, 0, len(all))
	for _, m := range all {
		if p := l.pods[m.UID]; p != nil {
			p.matched = m
			changed = append(changed, m.toLimiter())
		}
	}
	l.limiter.SetPolicies(now, limits, changed...)
}

// recount updates how a pod counts in its groups, by what the pod watch knows now. mirror reports whether the mirror of
// a static pod was deleted.
func (l *ledger) recount(now time.Time, p *Pod, pod podwatch.Pod, mirror bool) {
	switch {
	case mirror && !p.reported: // where the runtime has the pod, it is forgotten with its sandbox
		l.forget(now, p)
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
	state, reason := p.start()
	return state != throttle.Waiting && state != throttle.Starting && reason != reasons.Stuck
}
