package starts

import (
	"maps"
	"slices"
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Synchronize finds what exists. Pods whose containers began to run less than a start timeout ago count as starting, even
// over the limit. The next round of the loop ends the starts that are over.
func (s *Starts) Synchronize(sandboxes []*api.PodSandbox, ctrs []*api.Container) {
	now := time.Now()
	s.lock()
	uids := slices.Collect(maps.Keys(s.ledger.pods)) // some may not be listed
	s.unlock()
	known := map[string]podwatch.Pod{}
	for _, uid := range uids {
		known[uid] = s.Known(uid)
	}
	live := alive(sandboxes, ctrs)
	subjects := make([]subject, len(live))
	for i, sandbox := range live {
		uid := Key(sandbox)
		known[uid] = s.Known(uid)
		subjects[i] = subjectOf(sandbox, known[uid])
	}
	s.lockPods(now, subjects...)
	defer s.unlock()
	l := &s.ledger
	l.effects.wakes = true
	defer l.limiter.Together(now)() // what has ended makes room for the starts that exist first
	l.hooks.expect(ctrs)
	lost := l.rebuildPods(now, live, ctrs)
	for _, p := range lost {
		p.loseSandbox(now)
	}
	for uid, p := range l.pods {
		if !p.reported {
			continue
		}
		p.endTry(now, known[uid], p.allUndone(known[uid]), false)
		// Containers that run beside one that is in creation, whose hook may wait, are sidecars of a start that waits.
		if !p.progress(time.Time{}, podwatch.Pod{}).Making && l.adopt(now, p, known[uid], true) {
			l.report(observe.Unpaced{Reason: reasons.Adopted})
		}
	}
	for uid, p := range l.pods {
		if p.reported && !l.countRunning(now, p, known[uid]) && slices.Contains(lost, p) {
			l.hasNoSandbox(now, p, known[uid]) // not if it runs on: another would get its place in a group
		}
	}
}

// adopt counts a start that is under way without having been admitted; pod is what the watch knows. The next
// round of the loop ends it if it is over. It returns false if
//   - no process of the pod runs, or only beside a container that kubelet holds back,
//   - it may be over, and only sidecars run, beside an app that waits,
//   - the start counts already, or continued at once in the mode Shadow, or
//   - it began longer ago than a start may take, and its pod does not wait.
//
// over reports whether the start may be over, as after a time without the daemon. Then one that began so long ago counts
// from now: its timeout would report that it is stuck, before the review ends it.
func (l *ledger) adopt(now time.Time, p *Pod, pod podwatch.Pod, over bool) bool {
	run := p.progress(time.Time{}, podwatch.Pod{})
	if len(run.IDs) == 0 || pod.CrashLooping && pod.Describes(run.IDs) {
		return false
	}
	began := run.Youngest
	old := now.Sub(began) >= l.config.Load().Spec.GetStartTimeout()
	t := p.ticket
	switch state, _ := p.ticket.Status(); {
	case state == throttle.Starting:
		return false
	case state == throttle.Waiting:
		if over && pod.OnlySidecars(run.IDs) || !began.After(t.Arrived()) || p.inShadow() != nil {
			return false // a sidecar that ran before, beside a container that waits, or the start continued in the mode Shadow
		}
		if old && over {
			began = now
		}
	case old, state == throttle.Started && !began.After(t.Ended()):
		return false
	}
	request := throttle.Request{UID: p.UID, Name: p.NamespacedName(), Flow: p.Namespace, Arrived: run.Made, Groups: p.matched.groups}
	p.ticket = l.limiter.Adopt(now, request, began)
	return true
}

// rebuildPods updates the pods to what exists: the sandboxes that live, which alive returned, and their containers. It
// returns the pods whose sandbox is gone, also those that have another one now.
func (l *ledger) rebuildPods(now time.Time, live []*api.PodSandbox, ctrs []*api.Container) (lost []*Pod) {
	listed := map[string]bool{}
	bySandbox := map[string]*Pod{}
	for _, sandbox := range live {
		bySandbox[sandbox.GetId()] = l.pods[Key(sandbox)]
	}
	for _, sandbox := range live {
		p := bySandbox[sandbox.GetId()]
		if bySandbox[p.sandbox] == nil {
			if p.sandbox != "" {
				lost = append(lost, p)
			}
			p.setSandbox(sandbox.GetId())
		}
		p.lastSandbox = p.sandbox // one of several that live stays the present one
	}
	for _, ctr := range ctrs {
		if p := bySandbox[ctr.GetPodSandboxId()]; p != nil {
			listed[ctr.GetId()] = true
			p.adopt(ctr, now)
		}
	}
	for _, p := range l.pods {
		if p.sandbox != "" && bySandbox[p.sandbox] == nil {
			p.sandbox = ""
			p.sandboxGone()
			lost = append(lost, p)
		}
		for id, c := range p.containers {
			if listed[id] {
				continue
			}
			if c.running && p.sandbox != "" {
				p.exit(c, now) // while the daemon was not connected
			}
			p.remove(id)
		}
	}
	return lost
}

// alive returns the sandboxes that live. A runtime also lists a pod's dead sandboxes, in no order. containerd reports
// no state of them, but a dead one has no process. The sandbox of a virtual machine may have none either after a
// restart of containerd. It lives if one of its containers runs.
func alive(pods []*api.PodSandbox, ctrs []*api.Container) (live []*api.PodSandbox) {
	runs := map[string]bool{}
	for _, ctr := range ctrs {
		if state := ctr.GetState(); state == api.ContainerState_CONTAINER_RUNNING || state == api.ContainerState_CONTAINER_PAUSED {
			runs[ctr.GetPodSandboxId()] = true
		}
	}
	for _, pod := range pods {
		if pod.GetPid() != 0 || runs[pod.GetId()] {
			live = append(live, pod)
		}
	}
	return live
}

// adopt adds or updates a container that exists. A runtime lists none that has ended.
func (p *Pod) adopt(ctr *api.Container, now time.Time) {
	c := p.containers[ctr.GetId()]
	if c == nil {
		c = p.create(ctr, now)
	}
	c.name, c.pid = ctr.GetName(), int(ctr.GetPid())
	switch ctr.GetState() {
	case api.ContainerState_CONTAINER_RUNNING, api.ContainerState_CONTAINER_PAUSED:
		p.release(c.name)
		if !c.running { // else the daemon knows it, and the wall clock may have been set back since
			c.running, c.since = true, now
			if began := ctr.GetStartedAt(); began > 0 { // on the clock of now: the wall clock may be set later, or was since
				c.since = now.Add(min(0, time.Unix(0, began).Sub(now)))
			}
		}
	case api.ContainerState_CONTAINER_CREATED:
		p.holdBack(now, c.name) // its hook may wait
	}
}
