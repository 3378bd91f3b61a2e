package waiting

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/containerd/nri/pkg/api"
	"github.com/prometheus/procfs"
)

// runcShim is the shim that runs containers as processes of the node. It is the only shim that is known to
// serve other requests while it makes a container. A shim that runs a virtual machine holds a lock meanwhile.
const runcShim = "containerd-shim-runc-v2"

// notSeenMade is why the gate is not used in a sandbox that this daemon did not see being made. A shim
// outlives the runtime that started it, so the version of the runtime is not enough.
const notSeenMade = "the pod's sandbox is older than the daemon: its shim may hold up statistics while a hook waits"

// shimBook knows in which sandboxes a hook may wait: in those that the daemon saw being made, if the runtime
// and the shim support it. Make it with newShimBook. It is safe for concurrent use.
type shimBook struct {
	proc    string // where the host's /proc is
	runtime *atomic.Pointer[runtime]

	mu   sync.Mutex
	made map[string]string // why no hook may wait in a sandbox that was seen being made, by sandbox ID; empty: it may
}

func newShimBook(procRoot string, r *atomic.Pointer[runtime]) *shimBook {
	return &shimBook{proc: procRoot, runtime: r, made: map[string]string{}}
}

// add adds a sandbox that is being made. It reads files of /proc.
func (b *shimBook) add(pod *api.PodSandbox) {
	bars := cmp.Or(b.runtime.Load().barsGate, shimFault(pod, shimOf(b.proc, pod)))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.made[pod.GetId()] = bars
}

// keep removes all sandboxes but these.
func (b *shimBook) keep(pods []*api.PodSandbox) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.made, func(id, _ string) bool {
		return !slices.ContainsFunc(pods, func(pod *api.PodSandbox) bool { return pod.GetId() == id })
	})
}

func (b *shimBook) remove(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.made, id)
}

// barred returns why no hook may wait in a sandbox, or "" if it may.
func (b *shimBook) barred(pod *api.PodSandbox) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if bars, seen := b.made[pod.GetId()]; seen {
		return bars
	}
	return notSeenMade
}

// shimFault returns why a pod's shim is not known to support waiting hooks, or "" if it is. If the name of
// the shim is not known (empty), only the default runtime handler is.
func shimFault(pod *api.PodSandbox, shim string) string {
	switch handler := pod.GetRuntimeHandler(); {
	case shim != "" && shim != runcShim:
		return fmt.Sprintf("the pod's shim %s is not known to support waiting hooks", shim)
	case shim == "" && handler != "" && handler != "runc":
		return fmt.Sprintf("the pod's runtime handler %q is not known to support waiting hooks", handler)
	}
	return ""
}

// shimOf returns the name of a sandbox's shim, or "" if it cannot be found. The shim is the first process of
// the sandbox or its parent, and has the ID of the sandbox among its arguments.
func shimOf(procRoot string, pod *api.PodSandbox) string {
	fs, err := procfs.NewFS(procRoot)
	if err != nil || pod.GetPid() == 0 {
		return ""
	}
	pid := int(pod.GetPid())
	for range 2 {
		proc, err := fs.Proc(pid)
		if err != nil {
			return ""
		}
		if args, err := proc.CmdLine(); err == nil && len(args) > 0 && slices.Contains(args, pod.GetId()) {
			return filepath.Base(args[0])
		}
		stat, err := proc.Stat()
		if err != nil {
			return ""
		}
		pid = stat.PPID
	}
	return ""
}
