package starts

import (
	"maps"
	"slices"
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/pods"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// subject is a pod, and what is known of it that policies may ask.
type subject struct {
	uid, namespace string
	sandbox        *api.PodSandbox    // nil if it is not at hand
	facts          *startpolicy.Facts // of the pod watch; nil if it has none
}

// subjectOf returns the pod of a sandbox. pod is what the pod watch knows of it, or the zero value.
func subjectOf(sandbox *api.PodSandbox, pod podwatch.Pod) subject {
	return subject{uid: pods.Key(sandbox), namespace: sandbox.GetNamespace(), sandbox: sandbox, facts: pod.Facts}
}

// match finds the groups of the pod: by the facts of the pod watch or, until it has them, by the labels and the CPU
// request that the runtime reports.
func (s subject) match(set *policies.Set) matched {
	m := matched{Pod: policies.Pod{UID: s.uid, Namespace: s.namespace}, unknown: s.facts == nil && s.sandbox == nil}
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

// matched is a pod with its groups by the policies in force.
type matched struct {
	policies.Pod
	groups  []throttle.Membership
	unknown bool // neither the runtime nor the pod watch has said what policies ask
}

// groupLimiter is the part of [throttle.Limiter] that groups call.
type groupLimiter interface {
	SetPolicies(now time.Time, limits map[string]throttle.GroupLimits, pods ...throttle.PodGroups)
	SetGroups(now time.Time, pod throttle.PodGroups)
	Finished(now time.Time, uid string)
}

// groups are the pods with their groups, by UID. They keep the limiter up to date. Their owner locks.
type groups struct {
	limiter groupLimiter
	pods    map[string]*groupedPod
	version uint64 // counts how often something new was known of a pod
}

// groupedPod is a pod in its groups. A pod runs from its first container until it has finished.
type groupedPod struct {
	matched
	running, ready bool
}

func (p *groupedPod) toLimiter() throttle.PodGroups {
	return throttle.PodGroups{UID: p.UID, Groups: p.groups, Running: p.running, Ready: p.ready}
}

// put adds or updates pods. A pod without news keeps its groups.
func (g *groups) put(now time.Time, found []matched) {
	for _, m := range found {
		one := g.pods[m.UID]
		switch {
		case one == nil:
			one = &groupedPod{}
			g.pods[m.UID] = one
		case m.unknown:
			continue
		}
		before := one.groups
		one.matched, g.version = m, g.version+1
		if !sameGroups(before, m.groups) {
			g.limiter.SetGroups(now, one.toLimiter())
		}
	}
}

// regroup replaces the groups of pods, and the limits of the policies, in one step. Otherwise, a pod that waits could be
// admitted to a group that some pods have left already while others have yet to join it. Pods may be unknown by now.
func (g *groups) regroup(now time.Time, limits map[string]throttle.GroupLimits, all []matched) {
	var changed []throttle.PodGroups
	for _, m := range all {
		if one := g.pods[m.UID]; one != nil && !sameGroups(one.groups, m.groups) {
			one.groups = m.groups
			changed = append(changed, one.toLimiter())
		}
	}
	g.limiter.SetPolicies(now, limits, changed...)
}

// of returns the groups of a pod, which must not be changed; of an unknown pod, none.
func (g *groups) of(uid string) []throttle.Membership {
	if one := g.pods[uid]; one != nil {
		return one.groups
	}
	return nil
}

// rests notes that no container of a pod runs. If the pod was admitted before, it still counts as running, but is not
// ready any more. The pod may be unknown.
func (g *groups) rests(now time.Time, uid string) {
	if one := g.pods[uid]; one != nil {
		g.count(now, one, one.running, false)
	}
}

// runs notes that a container of a pod runs that was admitted and has not finished; ready reports whether its
// containers are ready. The pod may be unknown.
func (g *groups) runs(now time.Time, uid string, ready bool) {
	if one := g.pods[uid]; one != nil {
		g.count(now, one, true, ready)
	}
}

// count informs the limiter where anything changed.
func (g *groups) count(now time.Time, one *groupedPod, running, ready bool) {
	if one.running != running || one.ready != ready {
		one.running, one.ready = running, ready
		g.limiter.SetGroups(now, one.toLimiter())
	}
}

// countsReady notes that the limiter counts a pod as ready, because its start seems to be over. The pod may be unknown.
func (g *groups) countsReady(uid string) {
	if one := g.pods[uid]; one != nil {
		one.running, one.ready = true, true
	}
}

// finished notes that a pod has stopped running. It may start again. The pod may be unknown.
func (g *groups) finished(now time.Time, uid string) {
	if one := g.pods[uid]; one != nil {
		one.running, one.ready = false, false
	}
	g.limiter.Finished(now, uid)
}

// drop forgets all that is known of a pod that is gone. The pod may be unknown.
func (g *groups) drop(now time.Time, uid string) {
	delete(g.pods, uid)
	g.limiter.Finished(now, uid)
}

func sameGroups(a, b []throttle.Membership) bool {
	return slices.EqualFunc(a, b, func(a, b throttle.Membership) bool {
		return a.Key == b.Key && a.Bypass == b.Bypass && maps.Equal(a.Requests, b.Requests)
	})
}

// recount updates how a pod counts in its groups, by what the pod watch knows now. mirror reports whether the mirror of
// a static pod was deleted.
func (e *entries) recount(now time.Time, pod podwatch.Pod, mirror bool) {
	_, inBook := e.book.Get(pod.UID)
	switch {
	case mirror && !inBook: // where the runtime has the pod, it is forgotten with its sandbox
		e.groups.drop(now, pod.UID)
	case pod.Terminal():
		e.groups.finished(now, pod.UID)
	case !e.countRunning(now, pod.UID, pod):
		e.groups.rests(now, pod.UID)
	}
}

// countRunning counts a pod among those that run if one of its containers does, by the runtime or by kubelet's
// report, and reports whether it does. A start that continued in the mode Shadow counts when its turn has come. A pod that
// the watch does not know counts as ready once its start is over.
func (e *entries) countRunning(now time.Time, uid string, pod podwatch.Pod) bool {
	_, inBook := e.book.Get(uid)
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
		ready = e.seemsReady(uid)
	}
	e.groups.runs(now, uid, ready)
	return true
}

// seemsReady reports whether the start of a pod that runs is over, and was not stuck.
func (e *entries) seemsReady(uid string) bool {
	t := e.limiter.Lookup(uid)
	state, reason := t.Status()
	return state != throttle.Waiting && state != throttle.Starting && reason != reasons.Stuck
}
