package plugin

import (
	"maps"
	"slices"
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// synchronize rebuilds the records from what exists. Pods whose containers began
// to run less than a start timeout ago count as starting, over the limit where
// reality is; those that have started are found out by the next review.
func (p *pacer) synchronize(pods []*api.PodSandbox, ctrs []*api.Container) {
	now := time.Now()
	p.gate.sandboxes.exist(pods)
	lost, found := p.rebuild(now, alive(pods, ctrs), ctrs)
	for _, uid := range lost {
		p.keeper.Finished(now, uid)
		p.sandboxGone(now, uid)
	}
	for _, r := range found {
		p.find(now, r)
	}
	for _, uid := range p.recordedUIDs() {
		pod, _ := p.watched(uid)
		p.countRunning(now, uid, pod)
	}
	p.rejoin.expect(ctrs)
}

// alive leaves out the sandboxes in which nothing lives. A runtime lists a pod's dead
// sandboxes beside the present one, in no order. containerd tells no state of them, but a
// dead one has no process. A live one may have none either: that of a virtual machine,
// after a restart of containerd; what runs in it tells then.
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

// recordedUIDs gives the pods of which the runtime has told.
func (p *pacer) recordedUIDs() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.records))
}

// rebuild makes the records tell what exists: the sandboxes that live, and the containers
// in them. It gives the pods whose sandbox is
// gone, and the records of those that began lately.
func (p *pacer) rebuild(now time.Time, pods []*api.PodSandbox, ctrs []*api.Container) (lost []string, found []*record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	live := map[string]bool{}
	bySandbox := map[string]*record{}
	for _, sandbox := range pods {
		r := p.recordOfLocked(sandbox)
		r.enter(sandbox.GetId())
		bySandbox[sandbox.GetId()] = r
	}
	for _, r := range p.records {
		if r.sandbox != "" && bySandbox[r.sandbox] == nil {
			r.sandbox = ""
			clear(r.exits)
			lost = append(lost, r.uid)
		}
	}
	for _, ctr := range ctrs {
		r := bySandbox[ctr.GetPodSandboxId()]
		if r == nil {
			continue
		}
		live[ctr.GetId()] = true
		r.adopt(ctr, now)
	}
	for _, r := range p.records {
		for id, c := range r.containers {
			if live[id] {
				continue
			}
			if c.running && r.sandbox != "" {
				r.exit(c, now) // while nobody told
			}
			r.remove(id)
		}
		if c := r.youngest(); c != nil && now.Sub(c.since) < p.config.Load().Spec.GetStartTimeout() {
			found = append(found, r)
		}
	}
	return lost, found
}

// find counts a start that is under way without having been admitted. The next review
// finds out whether it is over.
func (p *pacer) find(now time.Time, r *record) {
	pod, _ := p.watched(r.uid)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.findLocked(now, r, pod)
}

// findLocked is find; pod is what the watch knows. What ends the start, the end of its
// container or of its pod, takes p.mu as well: it comes before, and nothing is found, or
// it ends what was found. p.mu must be held.
func (p *pacer) findLocked(now time.Time, r *record, pod podwatch.Pod) {
	c := r.youngest()
	if c == nil || p.records[r.uid] != r {
		return
	}
	if v, ok := p.limiter.View(now, r.uid); ok {
		switch v.State {
		case throttle.Starting, throttle.Started:
			return
		case throttle.Waiting:
			if !c.since.After(v.Arrived) {
				return // a sidecar that ran before, beside a container that waits
			}
		}
	}
	request := throttle.Request{UID: r.uid, Name: r.title(), Flow: r.namespace, Arrived: c.made}
	p.keeper.Join(now, subject(r, pod), func(groups []throttle.Membership) *throttle.Ticket {
		request.Groups = groups
		return p.limiter.Adopt(now, request, c.since)
	})
	p.wake()
}

// adopt takes over a container that exists.
func (r *record) adopt(ctr *api.Container, now time.Time) {
	c := r.containers[ctr.GetId()]
	if c == nil {
		c = r.create(ctr, now)
	}
	c.name, c.cgroup, c.pid = ctr.GetName(), ctr.GetLinux().GetCgroupsPath(), int(ctr.GetPid())
	// On the clock of now: the wall clock may be set, or was since.
	at := func(nanos int64) time.Time {
		if nanos <= 0 {
			return now
		}
		return now.Add(min(0, time.Unix(0, nanos).Sub(now)))
	}
	switch ctr.GetState() {
	case api.ContainerState_CONTAINER_RUNNING, api.ContainerState_CONTAINER_PAUSED:
		c.running, c.since = true, at(ctr.GetStartedAt())
	case api.ContainerState_CONTAINER_STOPPED:
		c.running = false
		r.exits[c.name] = exits{last: at(ctr.GetFinishedAt())}
	}
}
