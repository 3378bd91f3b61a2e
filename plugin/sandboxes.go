package plugin

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"github.com/containerd/nri/pkg/api"
	"github.com/prometheus/procfs"
)

// runcShim is the shim that runs containers as processes of the node: the only
// one that is known to make its containers beside everything else it does. A shim
// that runs a virtual machine holds a lock meanwhile.
const runcShim = "containerd-shim-runc-v2"

// sandboxFacts is what speaks against waiting hooks in one sandbox.
type sandboxFacts struct {
	// old: its shim may hold up whoever asks it while a hook waits. A shim outlives
	// the runtime that started it, so the runtime's version alone does not tell.
	old bool
	// strange is why the sandbox's runtime handler is not known to bear waiting
	// hooks; empty: it is.
	strange string
}

// sandboxBook keeps the facts of the sandboxes that exist. Made by
// newSandboxBook; safe for concurrent use.
type sandboxBook struct {
	proc    string        // where the host's /proc is
	changed chan struct{} // holds at most one: known is not what is kept in the file

	mu    sync.Mutex
	known map[string]sandboxFacts
	fixed bool          // the present runtime starts shims without the lock
	since processOfNode // the present runtime; zero: not found
}

func newSandboxBook(procRoot string) *sandboxBook {
	return &sandboxBook{proc: procRoot, changed: make(chan struct{}, 1), known: map[string]sandboxFacts{}}
}

// connected takes over which runtime the sandboxes to come are made by.
func (b *sandboxBook) connected(fixed bool, runtime processOfNode) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fixed, b.since = fixed, runtime
}

// made takes note of a sandbox that the present runtime makes now.
func (b *sandboxBook) made(pod *api.PodSandbox) {
	shim, found := shimOf(b.proc, pod)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known[pod.GetId()] = sandboxFacts{old: !b.fixed, strange: strangeness(pod, shim, found)}
	b.change()
}

// exist takes note of all sandboxes that exist. Of one that was not seen being
// made, the age of its shim tells by which runtime it was.
func (b *sandboxBook) exist(pods []*api.PodSandbox) {
	b.mu.Lock()
	// A handler of the connection before may still take note of a sandbox.
	before, fixed, since := maps.Clone(b.known), b.fixed, b.since
	b.mu.Unlock()
	found := map[string]sandboxFacts{}
	exist := make(map[string]bool, len(pods))
	for _, pod := range pods {
		exist[pod.GetId()] = true
		if _, seen := before[pod.GetId()]; seen {
			continue
		}
		shim, seen := shimOf(b.proc, pod)
		young := seen && since.pid != 0 && shim.started >= since.started
		found[pod.GetId()] = sandboxFacts{old: !fixed || !young, strange: strangeness(pod, shim, seen)}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range before {
		if !exist[id] {
			delete(b.known, id)
		}
	}
	b.change()
	for id, facts := range found {
		if _, made := b.known[id]; !made {
			b.known[id] = facts
		}
	}
}

func (b *sandboxBook) removed(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.known, id)
	b.change()
}

// change has the facts kept. It does not block.
func (b *sandboxBook) change() {
	select {
	case b.changed <- struct{}{}:
	default: // they will be
	}
}

// of gives the facts of a sandbox; one that nobody told of counts as old.
func (b *sandboxBook) of(pod *api.PodSandbox) sandboxFacts {
	b.mu.Lock()
	defer b.mu.Unlock()
	if facts, ok := b.known[pod.GetId()]; ok {
		return facts
	}
	return sandboxFacts{old: true}
}

// strangeness tells why the runtime handler of a pod is not known to bear waiting
// hooks. Where the shim cannot be seen, only the default handler is.
func strangeness(pod *api.PodSandbox, shim processOfNode, found bool) string {
	switch handler := pod.GetRuntimeHandler(); {
	case found && shim.name != runcShim:
		return fmt.Sprintf("the pod's shim %s is not known to bear waiting hooks", shim.name)
	case !found && handler != "" && handler != "runc":
		return fmt.Sprintf("the pod's runtime handler %q is not known to bear waiting hooks", handler)
	}
	return ""
}

// processOfNode is a process of the node.
type processOfNode struct {
	pid     int
	name    string // of its program
	started uint64 // in ticks since the node was booted
}

// shimOf finds the shim of a sandbox: the parent of its first process, or that
// process itself, and called with the sandbox's ID. What another process with the
// same number says is never taken for it.
func shimOf(procRoot string, pod *api.PodSandbox) (processOfNode, bool) {
	pid := int(pod.GetPid())
	if pid == 0 {
		return processOfNode{}, false
	}
	fs, err := procfs.NewFS(procRoot)
	if err != nil {
		return processOfNode{}, false
	}
	for range 2 {
		proc, err := fs.Proc(pid)
		if err != nil {
			return processOfNode{}, false
		}
		stat, err := proc.Stat()
		if err != nil {
			return processOfNode{}, false
		}
		if args, err := proc.CmdLine(); err == nil && len(args) > 0 && slices.Contains(args, pod.GetId()) {
			return processOfNode{pid: pid, name: filepath.Base(args[0]), started: stat.Starttime}, true
		}
		pid = stat.PPID
	}
	return processOfNode{}, false
}
