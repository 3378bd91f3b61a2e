package pods

import (
	"maps"
	"slices"
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
)

// Book is what the runtime has reported of pods. Make it with NewBook. It is not safe for concurrent use. Update,
// Create, Start, Hook and Rebuild add a pod that the book does not know. For every other method, such a pod has no
// sandboxes and no containers.
type Book struct{ pods map[string]*podState } // by Key

// NewBook returns an empty book.
func NewBook() *Book { return &Book{pods: map[string]*podState{}} }

// Pod is the identity of a pod, as the runtime reported it. Copies share the labels, which must not be changed.
type Pod struct {
	UID, Namespace, Name string
	CgroupParent         string
	Static               bool   // kubelet has the pod from a source of its own, by the sandbox
	Template             bool   // the sandbox has the label of a DaemonSet's pod
	Sandbox              string // the ID of the present one; empty if there is none
	NoGate               string // why no hook may wait in the present sandbox; empty if one may
}

// NamespacedName returns "namespace/name".
func (p Pod) NamespacedName() string { return p.Namespace + "/" + p.Name }

// NameOf returns "namespace/name" of the pod of a sandbox.
func NameOf(sandbox *api.PodSandbox) string { return sandbox.GetNamespace() + "/" + sandbox.GetName() }

// Key returns the pod's UID, or "namespace/name" if a client of the runtime set no UID.
func Key(sandbox *api.PodSandbox) string {
	if uid := sandbox.GetUid(); uid != "" {
		return uid
	}
	return NameOf(sandbox)
}

// Update adds or updates the pod of a sandbox.
func (b *Book) Update(sandbox *api.PodSandbox) Pod {
	key := Key(sandbox)
	p := b.pods[key]
	if p == nil {
		p = newPodState(sandbox)
		b.pods[key] = p
	}
	p.update(sandbox)
	return p.Pod
}

// Get returns a pod. It returns false if the book does not know the pod.
func (b *Book) Get(uid string) (Pod, bool) {
	if p := b.pods[uid]; p != nil {
		return p.Pod, true
	}
	return Pod{}, false
}

// UIDs returns all pods, in no order.
func (b *Book) UIDs() []string { return slices.Collect(maps.Keys(b.pods)) }

// at returns the state of a pod; of an unknown one, an empty state that is not added.
func (b *Book) at(uid string) *podState {
	if p := b.pods[uid]; p != nil {
		return p
	}
	return newPodState(&api.PodSandbox{Uid: uid})
}

// Unseen is Pod.NoGate in a sandbox that the daemon did not see being made. A shim outlives the runtime that started
// it, so the version of the runtime says nothing about it, unless the sandbox is younger than the runtime.
const Unseen = "the pod's sandbox may be older than this containerd: its shim may hold up statistics while a hook waits"

// SetSandbox makes a sandbox that is being made the pod's present one. A new sandbox is a first start: earlier exits no
// longer count. noGate becomes Pod.NoGate.
func (b *Book) SetSandbox(uid, sandbox, noGate string) {
	p := b.at(uid)
	p.setSandbox(sandbox)
	p.NoGate = noGate
}

// Refuse notes that a sandbox of the pod was refused. The removal of that sandbox, or of an older one, does not affect
// the pod.
func (b *Book) Refuse(uid string) { b.at(uid).lastSandbox = "" }

// StopSandbox notes that a sandbox and its containers were stopped, and reports whether it was the pod's present one.
func (b *Book) StopSandbox(uid, sandbox string) (present bool) {
	p := b.pods[uid]
	if p == nil || p.Sandbox != sandbox {
		return false
	}
	p.Sandbox = ""
	p.sandboxGone()
	for _, c := range p.containers {
		if c.sandbox == "" || c.sandbox == sandbox {
			c.running, c.exited = false, true
		}
	}
	return true
}

// IsLatest reports whether a sandbox is the pod's latest, and was not refused.
func (b *Book) IsLatest(uid, sandbox string) bool {
	return b.at(uid).lastSandbox == sandbox
}

// NewContainer is a container that the runtime is about to make, and the state of its pod.
type NewContainer struct {
	Pod
	Container string // its name
	Beside    bool   // another container of the pod runs
	AppBeside bool   // another app container, or one of an unknown kind, runs
	AppEnded  bool   // another app container exited in this sandbox
	Runs      bool   // any container of the pod runs
	Again     bool   // a container of its name exited in this sandbox
	Undone    bool   // see Undone; what is about to be made does not count
	After     string // a container that the daemon held back, and that kubelet starts before this one; empty if there is none
	Repeats   int    // how often it exited since it last ran for 10 min, after which kubelet's back-off begins anew
}

// Create adds a container that the runtime is about to make, and makes its sandbox the pod's present one. It replaces
// an older container of the same name. pod is kubelet's report of its pod.
func (b *Book) Create(now time.Time, sandbox *api.PodSandbox, ctr *api.Container, pod podwatch.Pod) NewContainer {
	b.Update(sandbox)
	p := b.at(Key(sandbox))
	p.setSandbox(sandbox.GetId())
	p.replace(ctr, now)
	undone := p.allUndone(pod)
	p.create(ctr, now)
	name := ctr.GetName()
	m := NewContainer{Pod: p.Pod, Container: name, Repeats: p.exits[name].repeats, Undone: undone, After: p.heldBefore(name, pod)}
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

// Start notes that a container's process runs.
func (b *Book) Start(now time.Time, sandbox *api.PodSandbox, ctr *api.Container) Pod {
	b.Update(sandbox)
	p := b.at(Key(sandbox))
	c := p.containers[ctr.GetId()]
	if c == nil {
		c = p.create(ctr, now)
	}
	// The runtime reports the stop of a process that ends at once before its start.
	c.running, c.since, c.pid = !c.exited, now, int(ctr.GetPid())
	p.release(c.name)
	return p.Pod
}

// Hold notes that the daemon holds back a container that it was asked for: it is refused, or its hook waits.
func (b *Book) Hold(uid, container string) { b.at(uid).hold(container) }

// Release notes that the daemon lets a container start that it may have held back.
func (b *Book) Release(uid, container string) { b.at(uid).release(container) }

// Expire notes that the wait of a pod's containers in creation ended without a turn. kubelet backs off before it makes
// them again, as after a crash, while the other containers of the pod may start: then its report is not about that start.
func (b *Book) Expire(uid string) {
	for _, c := range b.at(uid).containers {
		c.expired = c.expired || c.inCreation()
	}
}

// Undone reports whether the latest try to start a pod is over although no process of it ran (its container was rejected,
// undone, or could not be started), and no container of the pod runs or is in creation. pod is kubelet's report of it. The
// end of an init container is no such end.
func (b *Book) Undone(uid string, pod podwatch.Pod) bool { return b.at(uid).allUndone(pod) }

// EndContainer notes that a container's process ended, and returns its pod, or "" if the pod is unknown. removed
// reports whether the container was removed, too.
func (b *Book) EndContainer(now time.Time, sandbox *api.PodSandbox, ctr *api.Container, removed bool) (uid string) {
	p := b.owner(sandbox, ctr.GetId())
	if p == nil {
		return ""
	}
	// The runtime reports a stop also of a container that never started, but not with the state stopped.
	c := p.containers[ctr.GetId()]
	if c != nil && !c.exited && (c.running || ctr.GetState() == api.ContainerState_CONTAINER_STOPPED) {
		p.exit(c, now)
	}
	if removed {
		p.remove(ctr.GetId())
	}
	return p.UID
}

// owner returns the pod of a container, or nil if it is unknown.
func (b *Book) owner(sandbox *api.PodSandbox, container string) *podState {
	if p := b.pods[Key(sandbox)]; p != nil {
		return p
	}
	// If the runtime has forgotten the sandbox, only the container's ID is known.
	for _, p := range b.pods {
		if p.containers[container] != nil {
			return p
		}
	}
	return nil
}

// Hook adds the pod of a hook that waits for a container. known is what the book knows of the pod. repeats is how often
// the container exited, as in NewContainer. gone is closed when the container was removed, or a newer one took its
// name. It is nil if the book does not know the container.
func (b *Book) Hook(who Pod, containerID string) (known Pod, repeats int, gone <-chan struct{}) {
	p := b.pods[who.UID]
	if p == nil {
		p = newPodState(&api.PodSandbox{Uid: who.UID, Namespace: who.Namespace, Name: who.Name})
		b.pods[who.UID] = p
	}
	if c := p.containers[containerID]; c != nil {
		return p.Pod, p.exits[c.name].repeats, c.gone
	}
	return p.Pod, 0, nil
}

// Progress returns how far the start of a pod is. joined is when it joined the queue, pod kubelet's report of it.
func (b *Book) Progress(uid string, joined time.Time, pod podwatch.Pod) Progress {
	return b.at(uid).progress(joined, pod)
}

// PIDs returns the first process of each container of the pod that runs, on the host. An unknown one is 0.
func (b *Book) PIDs(uid string) (pids []int) {
	for _, c := range b.at(uid).containers {
		if c.running {
			pids = append(pids, c.pid)
		}
	}
	return pids
}

// ExitedSince reports whether a container exited in the pod's present sandbox at or after t.
func (b *Book) ExitedSince(uid string, t time.Time) bool {
	for _, e := range b.at(uid).exits {
		if !e.last.Before(t) {
			return true
		}
	}
	return false
}

// AllExited reports whether all app containers of a pod exited at or after t, and none of them runs. pod is kubelet's
// report of it. The result is false if the report has no app container.
func (b *Book) AllExited(uid string, t time.Time, pod podwatch.Pod) bool {
	p := b.at(uid)
	apps := 0
	for name, c := range pod.Containers {
		if c.Kind != podwatch.App {
			continue
		}
		apps++
		if e, exited := p.exits[name]; !exited || e.last.Before(t) || p.runs(name) {
			return false
		}
	}
	return apps > 0
}

// LastMade returns when the last container of a pod was made, or zero if none was.
func (b *Book) LastMade(uid string) (last time.Time) {
	for _, c := range b.at(uid).containers {
		if c.made.After(last) {
			last = c.made
		}
	}
	return last
}

// LatestID returns the ID of the container that was made last, or "" if there is none.
func (b *Book) LatestID(uid string) string {
	last := &container{}
	for _, c := range b.at(uid).containers {
		if last.id == "" || c.made.After(last.made) {
			last = c
		}
	}
	return last.id
}

// Empty reports whether a pod has no sandbox and no container.
func (b *Book) Empty(uid string) bool {
	p := b.at(uid)
	return p.Sandbox == "" && len(p.containers) == 0
}

// Drop forgets a pod, as if its containers were removed.
func (b *Book) Drop(uid string) {
	p := b.at(uid)
	for id := range p.containers {
		p.remove(id)
	}
	delete(b.pods, uid)
}
