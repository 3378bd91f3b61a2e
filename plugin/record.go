package plugin

import (
	"time"

	"github.com/containerd/nri/pkg/api"
)

// record is what the runtime has told of one pod. The pacer's mutex guards it.
type record struct {
	uid, namespace, name string
	cgroupParent         string
	labels, annotations  map[string]string
	sandbox              string               // the latest that was let in; empty: none
	refused              map[string]time.Time // sandboxes that were refused, which the runtime takes down
	containers           map[string]*container
	exits                map[string]time.Time // by container name, in the present sandbox
}

// container is what the runtime has told of one container.
type container struct {
	id, name string
	cgroup   string
	pid      int
	running  bool
	since    time.Time // of running
	exited   bool      // it ran and ended
	// gone is closed when nothing may start for this container any more: it was
	// removed, or a newer one of the same name took its place.
	gone chan struct{}
}

func newRecord(pod *api.PodSandbox) *record {
	return &record{
		uid: podKey(pod), namespace: pod.GetNamespace(), name: pod.GetName(),
		refused: map[string]time.Time{}, containers: map[string]*container{}, exits: map[string]time.Time{},
	}
}

// podKey is the pod's UID, or what tells it from others where a client of the
// runtime gave none.
func podKey(pod *api.PodSandbox) string {
	if uid := pod.GetUid(); uid != "" {
		return uid
	}
	return pod.GetNamespace() + "/" + pod.GetName()
}

func (r *record) title() string { return r.namespace + "/" + r.name }

// see takes over what a sandbox says of its pod.
func (r *record) see(pod *api.PodSandbox) {
	r.labels, r.annotations = pod.GetLabels(), pod.GetAnnotations()
	if parent := pod.GetLinux().GetCgroupParent(); parent != "" {
		r.cgroupParent = parent
	}
}

// enter makes the sandbox the pod's present one; exits in an earlier one count
// no more, for a new sandbox is a first start.
func (r *record) enter(sandbox string) {
	if r.sandbox != sandbox {
		r.sandbox = sandbox
		clear(r.exits)
	}
}

// create adds a container that is about to be made; an older one of the same
// name is replaced.
func (r *record) create(ctr *api.Container) *container {
	for _, old := range r.containers {
		if old.name != "" && old.name == ctr.GetName() && old.id != ctr.GetId() && !old.running {
			r.remove(old.id)
		}
	}
	c := &container{
		id: ctr.GetId(), name: ctr.GetName(), gone: make(chan struct{}),
		cgroup: ctr.GetLinux().GetCgroupsPath(),
	}
	if old := r.containers[c.id]; old != nil {
		c.gone = old.gone
	}
	r.containers[c.id] = c
	return c
}

func (r *record) remove(id string) {
	if c := r.containers[id]; c != nil {
		close(c.gone)
		delete(r.containers, id)
	}
}

// clear removes every container.
func (r *record) clear() {
	for id := range r.containers {
		r.remove(id)
	}
}

func (r *record) started(ctr *api.Container, at time.Time) {
	c := r.containers[ctr.GetId()]
	if c == nil {
		c = r.create(ctr)
	}
	// A process that ends at once is told to have stopped before it is told to
	// have started.
	c.running, c.since, c.pid = !c.exited, at, int(ctr.GetPid())
}

func (r *record) stopped(ctr *api.Container, at time.Time) {
	// The runtime says of a container that was never started, too, that it
	// stopped; but not that its state is stopped.
	c := r.containers[ctr.GetId()]
	if c == nil || (!c.running && ctr.GetState() != api.ContainerState_CONTAINER_STOPPED) {
		return
	}
	c.running, c.exited = false, true
	r.exits[c.name] = at
}

// exitedSince tells whether any container of the pod exited at or after t.
func (r *record) exitedSince(t time.Time) bool {
	for _, at := range r.exits {
		if !at.Before(t) {
			return true
		}
	}
	return false
}

// runs tells how many containers run, and since when the youngest of them does.
func (r *record) runs() (n int, youngest time.Time) {
	for _, c := range r.containers {
		if !c.running {
			continue
		}
		n++
		if c.since.After(youngest) {
			youngest = c.since
		}
	}
	return n, youngest
}
