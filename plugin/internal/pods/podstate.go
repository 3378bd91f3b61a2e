package pods

import (
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
)

// podState is what the runtime has reported of one pod.
type podState struct {
	Pod
	lastSandbox string // the latest; empty if it was refused
	containers  map[string]*container
	exits       map[string]exits // by container name, in the present sandbox
	held        []string         // containers that the daemon held back in this sandbox and that have not begun to run since
	undone      bool             // the container that was made last ended without having run
}

// container is what the runtime has reported of one container.
type container struct {
	id, name string
	sandbox  string    // ID; if it is empty, it is not known and counts as the present one
	made     time.Time // when the book first knew it
	pid      int       // of its first process, on the host; 0 if it is not known
	running  bool
	since    time.Time // when it began to run
	exited   bool      // it ended, or its sandbox did
	expired  bool      // its wait ended without a turn, before the pod's start was admitted
	// gone is closed when the container was removed, or a newer one took its name.
	gone chan struct{}
}

// inCreation reports whether the container was made, and has neither begun to run nor ended.
func (c *container) inCreation() bool { return !c.running && !c.exited }

// inSandbox reports whether a container is in the pod's present sandbox.
func (p *podState) inSandbox(c *container) bool { return c.sandbox == "" || c.sandbox == p.Sandbox }

func newPodState(sandbox *api.PodSandbox) *podState {
	return &podState{
		Pod:        Pod{UID: Key(sandbox), Namespace: sandbox.GetNamespace(), Name: sandbox.GetName()},
		containers: map[string]*container{}, exits: map[string]exits{},
	}
}

// update updates the pod from its sandbox. A tenant may set any number of labels and annotations, so it keeps only
// what those say that pacing needs.
func (p *podState) update(sandbox *api.PodSandbox) {
	source := sandbox.GetAnnotations()[annotationSource]
	p.Static = source != "" && source != sourceAPI
	_, p.Template = sandbox.GetLabels()[labelTemplateGeneration]
	if parent := sandbox.GetLinux().GetCgroupParent(); parent != "" {
		p.CgroupParent = parent
	}
}

// setSandbox makes a sandbox that exists the pod's present one.
func (p *podState) setSandbox(sandbox string) {
	p.lastSandbox = sandbox
	if p.Sandbox != sandbox {
		p.Sandbox, p.NoGate = sandbox, Unseen
		p.sandboxGone()
	}
}

// sandboxGone forgets what counted in the sandbox that was the present one.
func (p *podState) sandboxGone() {
	clear(p.exits)
	p.held, p.undone = nil, false
}

// replace ends the containers that a new one replaces, because they have the same name.
func (p *podState) replace(ctr *api.Container, now time.Time) {
	for _, old := range p.containers {
		if old.name != ctr.GetName() || old.id == ctr.GetId() {
			continue
		}
		if old.running {
			// kubelet saw its end. The runtime will report it later.
			p.exit(old, now)
			continue
		}
		p.remove(old.id)
	}
}

// create adds a container, and replaces an older one of the same name.
func (p *podState) create(ctr *api.Container, now time.Time) *container {
	p.replace(ctr, now)
	c := &container{
		id: ctr.GetId(), name: ctr.GetName(), sandbox: ctr.GetPodSandboxId(), made: now, gone: make(chan struct{}),
	}
	p.containers[c.id], p.undone = c, false
	return c
}

func (p *podState) remove(id string) {
	if c := p.containers[id]; c != nil {
		p.undone = p.undone || c.inCreation() && p.Sandbox != "" && p.inSandbox(c)
		close(c.gone)
		delete(p.containers, id)
	}
}

func (p *podState) exit(c *container, at time.Time) {
	ran := time.Duration(0)
	if c.running {
		ran = at.Sub(c.since)
	}
	c.running, c.exited = false, true
	if p.inSandbox(c) {
		p.exits[c.name] = p.exits[c.name].and(at, ran)
	}
}

// allUndone reports whether the latest try to start the pod has ended without a process, and no container runs or is in
// creation. pod is kubelet's report.
func (p *podState) allUndone(pod podwatch.Pod) bool {
	undone := p.undone
	for _, c := range p.containers {
		switch reported := pod.Containers[c.name]; {
		case c.running:
			return false
		case !c.inCreation():
		case reported.StartFailed && reported.ID == c.id:
			undone = true
		default:
			return false
		}
	}
	return undone
}

// Progress is how far a start is. The zero value: it has not begun.
type Progress struct {
	IDs      map[string]string // the IDs of the running containers, by name
	Youngest time.Time         // when the last of them began to run
	Made     time.Time         // when the book first knew that container
	Begun    bool              // one of them was made for this start
	// CrashLoops: kubelet holds back one that was made for this start and failed, but for those that Expire noted.
	CrashLoops bool
	Making     bool // one in the present sandbox is in creation: a report that kubelet cannot make one is older
}

// progress is [Book.Progress]. A container has failed only if the report is about that container. A container that runs
// by the report counts as running: a runtime that was killed may not report its start.
func (p *podState) progress(joined time.Time, pod podwatch.Pod) Progress {
	run := Progress{IDs: map[string]string{}}
	for _, c := range p.containers {
		if p.replaced(c) {
			continue
		}
		ofStart := !c.made.Before(joined)
		reported := pod.Containers[c.name]
		since := c.since
		if !c.running {
			if c.exited || !reported.Running || c.id != reported.ID {
				run.CrashLoops = run.CrashLoops || (ofStart && !c.expired && c.id == reported.ID && reported.CrashLooping)
				run.Making = run.Making || c.inCreation() && p.inSandbox(c)
				continue
			}
			since = c.made
		}
		run.IDs[c.name] = c.id
		run.Begun = run.Begun || ofStart
		if since.After(run.Youngest) {
			run.Youngest, run.Made = since, c.made
		}
	}
	return run
}

// replaced reports whether a later container has the same name. A runtime that was killed may list both as running.
func (p *podState) replaced(c *container) bool {
	for _, other := range p.containers {
		if other.name == c.name && other.made.After(c.made) {
			return true
		}
	}
	return false
}
