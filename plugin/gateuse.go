package plugin

import (
	"fmt"
	"os"
	"sync"
	"syscall"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
)

// shimFixed is the first containerd whose shim answers others while a container
// is being made; before it, a container that waits in the gate blocks the whole
// node's statistics.
var shimFixed = version.MustParseGeneric("2.3.2")

// gateUse decides whether a container may wait in the gate.
type gateUse struct {
	mode GateMode
	path string

	mu      sync.Mutex
	runtime string // why the runtime bars the gate; empty: it does not
}

func newGateUse(o Options) *gateUse {
	return &gateUse{mode: o.Gate, path: o.GatePath, runtime: "the runtime is not known yet"}
}

// setRuntime judges the runtime that the daemon is connected to.
func (g *gateUse) setRuntime(name, ver string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.runtime = runtimeBars(name, ver)
}

func runtimeBars(name, ver string) string {
	if name != "containerd" {
		return fmt.Sprintf("runtime %s is not known to bear waiting hooks", name)
	}
	v, err := version.ParseGeneric(ver)
	if err != nil {
		return fmt.Sprintf("containerd's version %q is not known", ver)
	}
	if v.LessThan(shimFixed) {
		return fmt.Sprintf("containerd %s holds up statistics while a hook waits; %s does not", ver, shimFixed)
	}
	return ""
}

// off tells why no container may wait in the gate; empty: some may.
func (g *gateUse) off() string {
	switch {
	case g.mode == GateNever:
		return "switched off by --gate never"
	case g.path == "":
		return "switched off by an empty --gate-path"
	}
	if fault := hookFault(g.path); fault != "" {
		return fault
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mode == GateAuto {
		return g.runtime
	}
	return ""
}

// barred tells why this container may not wait in the gate; empty: it may.
func (g *gateUse) barred(pod podwatch.Pod, known bool, container string) string {
	if off := g.off(); off != "" {
		return off
	}
	if known && pod.StartsAgain(container) {
		return ""
	}
	if !known && g.mode == GateAlways {
		return ""
	}
	return "kubelet would not start the container again if it were lost while it waits"
}

// hookFault tells what is wrong with the hook's binary. The runtime executes it
// as root on the host, so nobody else may have written it.
func hookFault(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Sprintf("the hook cannot be used: %v", err)
	}
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return fmt.Sprintf("the hook %s is not an executable file", path)
	}
	if info.Mode()&0o022 != 0 {
		return fmt.Sprintf("the hook %s can be written by group or others", path)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return fmt.Sprintf("the hook %s belongs to user %d, not to root", path, st.Uid)
	}
	return ""
}
