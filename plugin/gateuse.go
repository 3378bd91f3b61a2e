package plugin

import (
	"fmt"
	"sync"
	"time"

	"github.com/containerd/nri/pkg/api"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
)

// shimFixed is the first containerd whose shim answers others while a container
// is being made; before it, a container that waits in the gate blocks the whole
// node's statistics.
var shimFixed = version.MustParseGeneric("2.3.2")

// runtimeName is how the runtime calls itself that bears waiting hooks.
const runtimeName = "containerd"

// gateUse decides whether a container may wait in the gate.
type gateUse struct {
	mode      GateMode
	path      string
	sandboxes sandboxBook
	hooks     *hookBreaker
	pressure  *valve // set while the node is short of something

	mu      sync.Mutex
	runtime string // why the runtime bars the gate; empty: it does not
}

func newGateUse(o Options) *gateUse {
	return &gateUse{
		mode: o.Gate, path: o.GatePath, runtime: "the runtime is not known yet",
		sandboxes: sandboxBook{proc: o.ProcRoot}, hooks: newHookBreaker(), pressure: newValve(),
	}
}

// setRuntime judges the runtime that the daemon is connected to.
func (g *gateUse) setRuntime(name, ver string) {
	bars := runtimeBars(name, ver)
	g.sandboxes.connected(bars)
	g.hooks.connected()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.runtime = bars
}

func runtimeBars(name, ver string) string {
	if name != runtimeName {
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

// off tells why no container may wait in the gate; empty: some may. While the breaker is
// open none may, but for the one that tries.
func (g *gateUse) off() string {
	if closed := g.closed(); closed != "" {
		return closed
	}
	return g.hooks.opened()
}

// closed is off but for what the hooks of other containers have shown.
func (g *gateUse) closed() string {
	switch {
	case g.mode == GateNever:
		return "switched off by --gate never"
	case g.path == "":
		return "switched off by an empty --gate-path"
	}
	if fault := HookFault(g.path); fault != "" {
		return fault
	}
	g.mu.Lock()
	bars := g.runtime
	g.mu.Unlock()
	if g.mode == GateAuto && bars != "" {
		return bars
	}
	if g.pressure.isSet() {
		return pressureBars
	}
	return ""
}

// candidate is a container of which is asked whether it may wait in the gate.
type candidate struct {
	sandbox *api.PodSandbox
	uid     string
	pod     podwatch.Pod
	known   bool // the pod watch knows pod
	name    string
	beside  bool // another container of the pod runs
}

// barred tells why this container may not wait in the gate; empty: it may.
func (g *gateUse) barred(c candidate) string {
	if closed := g.closed(); closed != "" {
		return closed
	}
	if bars := g.hooks.bars(time.Now(), c.uid); bars != "" {
		return bars
	}
	switch bars := g.sandboxes.barred(c.sandbox); {
	case g.mode == GateAuto && bars != "":
		return bars
	case bars != "" && c.beside:
		return "a hook that waits would hold up the containers of the pod that run"
	}
	return g.lost(c)
}

// lost tells whether the container would be lost if the runtime were restarted
// while it waits; empty: it would not.
func (g *gateUse) lost(c candidate) string {
	if c.known && c.pod.StartsAgain(c.name) {
		return ""
	}
	if !c.known && g.mode == GateAlways {
		return ""
	}
	return "kubelet would not start the container again if it were lost while it waits"
}
