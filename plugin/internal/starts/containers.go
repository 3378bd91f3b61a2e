package starts

import (
	"slices"
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
)

// container is what the runtime has reported of one container.
type container struct {
	id, name string
	sandbox  string    // ID; if it is empty, it is not known and counts as the present one
	made     time.Time // when the daemon first knew it
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
func (p *Pod) inSandbox(c *container) bool { return c.sandbox == "" || c.sandbox == p.sandbox }

// update updates the pod from its sandbox.
func (p *Pod) update(sandbox *api.PodSandbox) {
	p.Identity, p.reported = identify(sandbox), true
	if parent := sandbox.GetLinux().GetCgroupParent(); parent != "" {
		p.cgroup = parent
	}
}

// Unseen is Pod.noGate in a sandbox that the daemon did not see being made. A shim outlives the runtime that started
// it, so the version of the runtime says nothing about it, unless the sandbox is younger than the runtime.
const Unseen = "the pod's sandbox may be older than this containerd: its shim may hold up statistics while a hook waits"

// setSandbox makes a sandbox that exists the pod's present one. A new sandbox is a first start: earlier exits no longer
// count.
func (p *Pod) setSandbox(sandbox string) {
	p.lastSandbox = sandbox
	if p.sandbox != sandbox {
		p.sandbox, p.noGate = sandbox, Unseen
		p.sandboxGone()
	}
}

// stopSandbox notes that a sandbox and its containers were stopped, and reports whether it was the pod's present one.
func (p *Pod) stopSandbox(sandbox string) (present bool) {
	if p.sandbox != sandbox {
		return false
	}
	p.sandbox = ""
	p.sandboxGone()
	for _, c := range p.containers {
		if c.sandbox == "" || c.sandbox == sandbox {
			c.running, c.exited = false, true
		}
	}
	return true
}

// sandboxGone forgets what counted in the sandbox that was the present one.
func (p *Pod) sandboxGone() {
	clear(p.exits)
	p.heldBack, p.undone = nil, ""
}

// replace ends the containers that a new one replaces, because they have the same name.
func (p *Pod) replace(ctr *api.Container, now time.Time) {
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
func (p *Pod) create(ctr *api.Container, now time.Time) *container {
	p.replace(ctr, now)
	c := &container{
		id: ctr.GetId(), name: ctr.GetName(), sandbox: ctr.GetPodSandboxId(), made: now, gone: make(chan struct{}),
	}
	p.containers[c.id], p.undone = c, ""
	return c
}

func (p *Pod) remove(id string) {
	if c := p.containers[id]; c != nil {
		if c.inCreation() && p.sandbox != "" && p.inSandbox(c) {
			p.undone = c.name
		}
		close(c.gone)
		delete(p.containers, id)
	}
}

func (p *Pod) exit(c *container, at time.Time) {
	ran := time.Duration(0)
	if c.running {
		ran = at.Sub(c.since)
	}
	c.running, c.exited = false, true
	if p.inSandbox(c) {
		p.exits[c.name] = p.exits[c.name].and(at, ran)
	}
}

// NewContainer is a container that the runtime is about to make, and the state of its pod.
type NewContainer struct {
	Identity              // of the pod
	NoGate         string // why no hook may wait in its sandbox; empty if one may
	Container      string // its name
	Beside         bool   // another container of the pod runs
	AppBeside      bool   // another app container, or one of an unknown kind, runs
	AppEnded       bool   // another app container exited in this sandbox
	Runs           bool   // any container of the pod runs
	Again          bool   // a container of its name exited in this sandbox
	Undone         bool   // see allUndone; what is about to be made does not count
	HeldBackBefore string // a container that the daemon held back, and that kubelet starts before this one; empty if there is none
	Repeats        int    // how often it exited since it last ran for 10 min, after which kubelet's back-off begins anew
}

// isAsked adds a container that the runtime is about to make, and makes its sandbox the present one. It replaces an
// older container of the same name. pod is kubelet's report.
func (p *Pod) isAsked(now time.Time, sandbox string, ctr *api.Container, pod podwatch.Pod) NewContainer {
	p.setSandbox(sandbox)
	p.replace(ctr, now)
	undone := p.allUndone(pod)
	p.create(ctr, now)
	name := ctr.GetName()
	m := NewContainer{
		Identity: p.Identity, NoGate: p.noGate, Container: name, Repeats: p.exits[name].repeats, Undone: undone, HeldBackBefore: p.heldBackBefore(now, name, pod),
	}
	_, m.Again = p.exits[name]
	for of := range p.exits {
		m.AppEnded = m.AppEnded || of != name && pod.KindOf(of) == podwatch.App
	}
	for _, c := range p.containers {
		m.Runs = m.Runs || c.running
		if !c.running || c.name == name {
			continue
		}
		m.Beside = true
		kind := pod.KindOf(c.name)
		m.AppBeside = m.AppBeside || kind == podwatch.App || kind == podwatch.Unknown
	}
	return m
}

// begins notes that a container's process runs.
func (p *Pod) begins(now time.Time, ctr *api.Container) {
	c := p.containers[ctr.GetId()]
	if c == nil {
		c = p.create(ctr, now)
	}
	// The runtime reports the stop of a process that ends at once before its start.
	c.running, c.since, c.pid = !c.exited, now, int(ctr.GetPid())
	p.release(c.name)
}

// ends notes that a container's process ended. removed reports whether the container was removed, too.
func (p *Pod) ends(now time.Time, ctr *api.Container, removed bool) {
	// The runtime reports a stop also of a container that never started, but not with the state stopped.
	c := p.containers[ctr.GetId()]
	if c != nil && !c.exited && (c.running || ctr.GetState() == api.ContainerState_CONTAINER_STOPPED) {
		p.exit(c, now)
	}
	if removed {
		p.remove(ctr.GetId())
	}
}

// expire notes that the wait of the containers in creation ended without a turn. kubelet backs off before it makes them
// again, as after a crash, while the other containers of the pod may start: then its report is not about that start.
func (p *Pod) expire(now time.Time) {
	for _, c := range p.containers {
		if c.inCreation() {
			c.expired = true
			p.holdBack(now, c.name)
		}
	}
}

// owner returns the pod with this UID or, if it is unknown, the pod of a container. It returns nil if both are unknown.
func (l *ledger) owner(uid, container string) *Pod {
	if p := l.pods[uid]; p != nil {
		return p
	}
	for _, p := range l.pods {
		if p.containers[container] != nil {
			return p
		}
	}
	return nil
}

// pids returns the first process of each container that runs, on the host. An unknown one is 0.
func (p *Pod) pids() (pids []int) {
	for _, c := range p.containers {
		if c.running {
			pids = append(pids, c.pid)
		}
	}
	return pids
}

// latest returns the container that was made last. It is the zero value if there is none.
func (p *Pod) latest() (last container) {
	for _, c := range p.containers {
		if last.id == "" || c.made.After(last.made) {
			last = *c
		}
	}
	return last
}

// forgivenAfter is how long a container must run so that its exit is forgiven. kubelet resets its back-off after
// the same time.
const forgivenAfter = 10 * time.Minute

// exits are the exits of the containers of one name, in one sandbox, since this daemon began. kubelet's restart
// count is of no use: it continues over a reboot, after which a start is a first start.
type exits struct {
	last time.Time
	// repeats counts the exits since the last that was forgiven.
	repeats int
}

// and returns the exits with one more, of a container that ran for the time ran.
func (e exits) and(at time.Time, ran time.Duration) exits {
	if ran >= forgivenAfter {
		return exits{last: at}
	}
	return exits{last: at, repeats: e.repeats + 1}
}

// kubelet asks for the app containers of a pod one after the other, and for the next one also if one failed. What the
// daemon held back must not start after what kubelet asks for later.

// askedAgainWithin is within what time kubelet asks again for a container that was refused, or whose wait ended: its longest
// back-off, and a sync of the pod.
const askedAgainWithin = 5*time.Minute + 15*time.Second

// heldBack is a container that the daemon held back.
type heldBack struct {
	name string
	at   time.Time // when it was refused, or its wait began or ended, last
}

// holdBack notes that the daemon holds back a container: it is refused, or its hook waits.
func (p *Pod) holdBack(now time.Time, name string) {
	for i := range p.heldBack {
		if p.heldBack[i].name == name {
			p.heldBack[i].at = now
			return
		}
	}
	p.heldBack = append(p.heldBack, heldBack{name, now})
}

// release notes that the daemon lets a container start that it may have held back.
func (p *Pod) release(name string) {
	p.heldBack = slices.DeleteFunc(p.heldBack, func(h heldBack) bool { return h.name == name })
}

// heldBackBefore returns a container that was held back and comes before the one of this name: by the pod's spec or, if that
// is not known, because kubelet asked for it first. It returns "" if there is none. If kubelet reports that it cannot
// make a container, does not start one again, or backs off for minutes after the waits of one have ended without a turn, it
// does not wait for that one either, nor if no report comes and kubelet has not asked again in time. It asks for nothing
// after an init container before that is done: what the daemon held back has run then, while there was no connection to the
// runtime.
func (p *Pod) heldBackBefore(now time.Time, name string, pod podwatch.Pod) string {
	asked, known := pod.Containers[name]
	for _, held := range p.heldBack {
		other := pod.Containers[held.name]
		switch {
		case !known && held.name == name:
			return ""
		case other.Kind == podwatch.Init, pod.CannotMake, other.Over, other.CrashLooping, known && other.Place >= asked.Place,
			now.Sub(held.at) > askedAgainWithin:
		default:
			return held.name
		}
	}
	return ""
}
