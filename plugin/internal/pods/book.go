package pods

import (
	"maps"
	"slices"
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/usage"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
)

// Book is what the runtime has told of pods. Make it with NewBook. It is not safe for concurrent
// use. A pod that the book does not know is no error in any method: it has nothing, and nothing
// is kept of it.
type Book struct{ pods map[string]*podState } // by Key

// NewBook returns an empty book.
func NewBook() *Book { return &Book{pods: map[string]*podState{}} }

// Pod is who a pod is, by what the runtime told. The labels are shared between copies and must not
// be written.
type Pod struct {
	UID, Namespace, Name string
	CgroupParent         string
	MilliCPU             int64             // that the pod requests, by its sandbox; 0: not known
	FromAPI, Static      bool              // where kubelet has it from, by its sandbox; neither: not told
	Template             bool              // its sandbox has the label of a DaemonSet's pod
	Labels               map[string]string // those that policies ask for
	Sandbox              string            // the latest that was let in; empty: none
}

// Title is the pod for people: "namespace/name".
func (p Pod) Title() string { return p.Namespace + "/" + p.Name }

// Key is the pod's UID, or what tells it from others where a client of the runtime gave none.
func Key(pod *api.PodSandbox) string {
	if uid := pod.GetUid(); uid != "" {
		return uid
	}
	return pod.GetNamespace() + "/" + pod.GetName()
}

// See takes over what a sandbox says of its pod; needs are the labels that policies ask for.
func (b *Book) See(sandbox *api.PodSandbox, needs startpolicy.Needs) Pod {
	key := Key(sandbox)
	r := b.pods[key]
	if r == nil {
		r = newPodState(sandbox)
		b.pods[key] = r
	}
	r.update(sandbox, needs)
	return r.Pod
}

// Get returns a pod; false: the runtime has told nothing of it, or all of it is gone.
func (b *Book) Get(uid string) (Pod, bool) {
	if r := b.pods[uid]; r != nil {
		return r.Pod, true
	}
	return Pod{}, false
}

// UIDs returns all pods, in no order.
func (b *Book) UIDs() []string { return slices.Collect(maps.Keys(b.pods)) }

// at returns the state of a pod; of one that the book does not know, a state that it does not keep.
func (b *Book) at(uid string) *podState {
	if r := b.pods[uid]; r != nil {
		return r
	}
	return newPodState(&api.PodSandbox{Uid: uid})
}

// Enter makes a sandbox the pod's present one. A new sandbox is a first start: exits in an earlier
// one count no more.
func (b *Book) Enter(uid, sandbox string) { b.at(uid).setSandbox(sandbox) }

// Refuse takes note of a sandbox that was not let in: its end will say nothing of the pod.
func (b *Book) Refuse(now time.Time, uid, sandbox string) {
	r := b.at(uid)
	r.lastSandbox = sandbox
	r.refused[sandbox] = now
}

// StopSandbox takes note that a sandbox was stopped, and all in it with it. False: it was not the
// pod's present one.
func (b *Book) StopSandbox(uid, sandbox string) (present bool) {
	r := b.pods[uid]
	if r == nil || r.Sandbox != sandbox {
		return false
	}
	r.Sandbox = ""
	clear(r.exits)
	for _, c := range r.containers {
		if c.sandbox == "" || c.sandbox == sandbox {
			c.running, c.exited = false, true
		}
	}
	return true
}

// RemoveSandbox takes note that a sandbox is gone. last: it is the latest that the pod had, and was
// not refused.
func (b *Book) RemoveSandbox(uid, sandbox string) (last bool) {
	r := b.at(uid)
	_, wasRefused := r.refused[sandbox]
	delete(r.refused, sandbox)
	return !wasRefused && r.lastSandbox == sandbox
}

// Made is a container that is about to be made, and what the book knows beside it.
type Made struct {
	Pod
	Container string // its name
	Beside    bool   // another container of the pod runs
	AppBeside bool   // another that is an app container, or of an unknown kind
	Runs      bool   // any container of the pod runs
	Again     bool   // one of its name exited in this sandbox
	Repeats   int    // how often, but for exits that are forgiven
}

// Create adds a container that is about to be made, in a sandbox that it makes the pod's present
// one; an older one of the same name is replaced. known is what kubelet says of the pod.
func (b *Book) Create(now time.Time, sandbox *api.PodSandbox, ctr *api.Container, needs startpolicy.Needs, known podwatch.Pod) Made {
	b.See(sandbox, needs)
	r := b.at(Key(sandbox))
	r.setSandbox(sandbox.GetId())
	r.create(ctr, now)
	name := ctr.GetName()
	m := Made{Pod: r.Pod, Container: name, Runs: r.youngest() != nil, Repeats: r.exits[name].repeats}
	_, m.Again = r.exits[name]
	for _, c := range r.containers {
		if !c.running || c.name == name {
			continue
		}
		m.Beside = true
		kind := known.Containers[c.name].Kind
		m.AppBeside = m.AppBeside || kind == podwatch.App || kind == podwatch.Unknown
	}
	return m
}

// Start takes note of a process that runs.
func (b *Book) Start(now time.Time, sandbox *api.PodSandbox, ctr *api.Container, needs startpolicy.Needs) Pod {
	b.See(sandbox, needs)
	r := b.at(Key(sandbox))
	c := r.containers[ctr.GetId()]
	if c == nil {
		c = r.create(ctr, now)
	}
	if c.name == "" { // only its hook had told of it
		c.name = ctr.GetName()
	}
	// A process that ends at once is told to have stopped before it is told to
	// have started.
	c.running, c.since, c.pid = !c.exited, now, int(ctr.GetPid())
	return r.Pod
}

// EndContainer takes note of a process of the pod that ended; removed: its container is gone, too.
func (b *Book) EndContainer(now time.Time, uid string, ctr *api.Container, removed bool) {
	r := b.at(uid)
	// The runtime says of a container that was never started, too, that it
	// stopped; but not that its state is stopped.
	c := r.containers[ctr.GetId()]
	if c != nil && !c.exited && (c.running || ctr.GetState() == api.ContainerState_CONTAINER_STOPPED) {
		r.exit(c, now)
	}
	if removed {
		r.remove(ctr.GetId())
	}
}

// Owner returns the pod of a container; false: nothing is known of it.
func (b *Book) Owner(sandbox *api.PodSandbox, ctr *api.Container) (uid string, ok bool) {
	if r := b.pods[Key(sandbox)]; r != nil {
		return r.UID, true
	}
	// Where the runtime has forgotten the sandbox, it tells no more than the container's ID.
	for _, r := range b.pods {
		if r.containers[ctr.GetId()] != nil {
			return r.UID, true
		}
	}
	return "", false
}

// Hook takes note of a hook that waits for a container, of which the book may know nothing: an
// earlier daemon gave the hook. gone is closed when nothing may start for the container any more:
// it was removed, or a newer one of the same name took its place.
func (b *Book) Hook(now time.Time, pod Pod, containerID string) (known Pod, repeats int, gone <-chan struct{}) {
	r := b.pods[pod.UID]
	if r == nil {
		r = newPodState(&api.PodSandbox{Uid: pod.UID, Namespace: pod.Namespace, Name: pod.Name})
		b.pods[pod.UID] = r
	}
	c := r.containers[containerID]
	if c == nil {
		c = r.create(&api.Container{Id: containerID}, now)
	}
	return r.Pod, r.exits[c.name].repeats, c.gone
}

// HookLeft forgets a container of which only its hook has ever told.
func (b *Book) HookLeft(uid, containerID string) {
	r := b.at(uid)
	if c := r.containers[containerID]; c != nil && c.name == "" {
		r.remove(c.id)
	}
}

// Progress tells how far the start of a pod is that joined the queue at a time; report is what
// kubelet says of the pod.
func (b *Book) Progress(uid string, joined time.Time, report podwatch.Pod) Progress {
	return b.at(uid).progress(joined, report)
}

// Place returns where the pod's containers run.
func (b *Book) Place(uid string) usage.Place {
	r := b.at(uid)
	place := usage.Place{CgroupParent: r.CgroupParent}
	for _, c := range r.containers {
		if c.running {
			place.Containers = append(place.Containers, usage.Container{Cgroup: c.cgroup, PID: c.pid})
		}
	}
	return place
}

// ExitedSince reports whether the named container of the pod, or, without a name, any of them, exited in the pod's
// present sandbox at or after t.
func (b *Book) ExitedSince(uid, name string, t time.Time) bool {
	for of, e := range b.at(uid).exits {
		if (name == "" || of == name) && !e.last.Before(t) {
			return true
		}
	}
	return false
}

// AllExited reports whether all app containers that kubelet names exited at or after t, and none of
// them runs. It is false where kubelet names none.
func (b *Book) AllExited(uid string, t time.Time, report podwatch.Pod) bool {
	r := b.at(uid)
	apps := 0
	for name, c := range report.Containers {
		if c.Kind != podwatch.App {
			continue
		}
		apps++
		if e, exited := r.exits[name]; !exited || e.last.Before(t) || r.runs(name) {
			return false
		}
	}
	return apps > 0
}

// Running is a container that runs.
type Running struct {
	Made  time.Time // when the runtime told of it first
	Since time.Time // of running
}

// Youngest returns the container of the pod that began to run last; false: none runs.
func (b *Book) Youngest(uid string) (Running, bool) {
	c := b.at(uid).youngest()
	if c == nil {
		return Running{}, false
	}
	return Running{Made: c.made, Since: c.since}, true
}

// LatestID returns the ID of the pod's container that was made last; empty: there is none.
func (b *Book) LatestID(uid string) string {
	last := &container{}
	for _, c := range b.at(uid).containers {
		if last.id == "" || c.made.After(last.made) {
			last = c
		}
	}
	return last.id
}

// LongRunning is a pod of the API server, and when the youngest container began to run of
// those that have run for a time.
type LongRunning struct {
	Pod
	Since time.Time
}

// RunFor returns the pods of the API server with a container that has run for so long.
func (b *Book) RunFor(now time.Time, atLeast time.Duration) (all []LongRunning) {
	for _, r := range b.pods {
		if !r.FromAPI {
			continue
		}
		youngest := time.Time{}
		for _, c := range r.containers {
			if c.running && now.Sub(c.since) >= atLeast && c.since.After(youngest) {
				youngest = c.since
			}
		}
		if !youngest.IsZero() {
			all = append(all, LongRunning{Pod: r.Pod, Since: youngest})
		}
	}
	return all
}

// refusedKept is how long the stop of a refused sandbox is waited for.
const refusedKept = 5 * time.Minute

// Sweep forgets refused sandboxes whose end was never told.
func (b *Book) Sweep(now time.Time) {
	for _, r := range b.pods {
		maps.DeleteFunc(r.refused, func(_ string, at time.Time) bool { return now.Sub(at) > refusedKept })
	}
}

// Empty reports whether nothing of a pod is left: no sandbox, not even one that was refused, and no
// container.
func (b *Book) Empty(uid string) bool {
	r := b.at(uid)
	return r.Sandbox == "" && len(r.refused) == 0 && len(r.containers) == 0
}

// Drop forgets a pod: nothing may start for its containers any more.
func (b *Book) Drop(uid string) {
	r := b.at(uid)
	for id := range r.containers {
		r.remove(id)
	}
	delete(b.pods, uid)
}
