package starts

import (
	"time"

	"github.com/containerd/nri/pkg/api"
)

// rebuildPods updates the pods to what exists: the sandboxes that live, which alive returned, and their containers. It
// returns the pods whose sandbox is gone, also those that have another one now.
func (l *ledger) rebuildPods(now time.Time, live []*api.PodSandbox, ctrs []*api.Container) (lost []*Pod) {
	listed := map[string]bool{}
	bySandbox := map[string]*Pod{}
	for _, sandbox := range live {
		bySandbox[sandbox.GetId()] = l.atSandbox(sandbox)
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

// adopt adds or updates a container that exists.
func (p *Pod) adopt(ctr *api.Container, now time.Time) {
	c := p.containers[ctr.GetId()]
	if c == nil {
		c = p.create(ctr, now)
	}
	c.name, c.pid = ctr.GetName(), int(ctr.GetPid())
	// The result is on the clock of now: the wall clock may be set later, or was since nanos.
	at := func(nanos int64) time.Time {
		if nanos <= 0 {
			return now
		}
		return now.Add(min(0, time.Unix(0, nanos).Sub(now)))
	}
	switch ctr.GetState() {
	case api.ContainerState_CONTAINER_RUNNING, api.ContainerState_CONTAINER_PAUSED:
		p.release(c.name)
		if !c.running { // else the daemon knows it, and the wall clock may have been set back since
			c.running, c.since = true, at(ctr.GetStartedAt())
		}
	case api.ContainerState_CONTAINER_STOPPED:
		c.running = false
		p.exits[c.name] = exits{last: at(ctr.GetFinishedAt())}
	case api.ContainerState_CONTAINER_CREATED:
		p.hold(c.name) // its hook may wait
	}
}
