package waiting

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/containerd/nri/pkg/api"
	"github.com/prometheus/procfs"
)

// runcShim is the shim that runs containers as processes of the node: the only
// one that is known to make its containers beside everything else it does. A shim
// that runs a virtual machine holds a lock meanwhile.
const runcShim = "containerd-shim-runc-v2"

// notSeenMade is why the gate is not used in a sandbox that this daemon did not see being made.
// A shim outlives the runtime that started it, so the runtime's version alone does not tell.
const notSeenMade = "the pod's sandbox is older than the daemon: its shim may hold up statistics while a hook waits"

// shimBook knows in which sandboxes a hook may wait: in those that it saw being made, by a
// runtime and a shim that bear it. Make it with newShimBook; safe for concurrent use.
type shimBook struct {
	proc    string // where the host's /proc is
	runtime *atomic.Pointer[runtime]

	mu   sync.Mutex
	made map[string]string // by ID, of sandboxes that were seen being made: why no hook may wait there
}

func newShimBook(procRoot string, r *atomic.Pointer[runtime]) *shimBook {
	return &shimBook{proc: procRoot, runtime: r, made: map[string]string{}}
}

// isMade takes note of a sandbox that is being made. It reads files of /proc.
func (b *shimBook) isMade(pod *api.PodSandbox) {
	bars := cmp.Or(b.runtime.Load().barsGate, strangeness(pod, shimOf(b.proc, pod)))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.made[pod.GetId()] = bars
}

// exist forgets the sandboxes that are not among these.
func (b *shimBook) exist(pods []*api.PodSandbox) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.made
	b.made = map[string]string{}
	for _, pod := range pods {
		if bars, seen := before[pod.GetId()]; seen {
			b.made[pod.GetId()] = bars
		}
	}
}

func (b *shimBook) removed(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.made, id)
}

// barred tells why no hook may wait in a sandbox; empty: it may.
func (b *shimBook) barred(pod *api.PodSandbox) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if bars, seen := b.made[pod.GetId()]; seen {
		return bars
	}
	return notSeenMade
}

// strangeness tells why the runtime handler of a pod is not known to bear waiting
// hooks. Where the shim cannot be seen, only the default handler is.
func strangeness(pod *api.PodSandbox, shim string) string {
	switch handler := pod.GetRuntimeHandler(); {
	case shim != "" && shim != runcShim:
		return fmt.Sprintf("the pod's shim %s is not known to bear waiting hooks", shim)
	case shim == "" && handler != "" && handler != "runc":
		return fmt.Sprintf("the pod's runtime handler %q is not known to bear waiting hooks", handler)
	}
	return ""
}

// shimOf returns the name of a sandbox's shim: the parent of its first process, or that
// process itself, and called with the sandbox's ID. Empty: it cannot be seen.
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
