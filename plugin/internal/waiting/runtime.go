package waiting

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
)

// runtime is what is known of the runtime that the daemon is connected to.
type runtime struct {
	barsGate    string        // why containers may not wait in the gate; empty if they may
	barsSandbox string        // why sandboxes may not be refused; empty if they may
	timeout     time.Duration // of one call of a handler; 0 until it is known
}

// notConnected is used until the daemon is connected to a runtime.
var notConnected = &runtime{barsGate: "the runtime is not known yet"}

// runtimeName is the name of the runtime that supports waiting hooks.
const runtimeName = "containerd"

// shimFixed is the first containerd whose shim answers other requests while a container is being made.
// Before it, a container that waits in the gate blocks the statistics of the whole node.
var shimFixed = version.MustParseGeneric("2.3.2")

// leaky are the versions of containerd that do not remove the record and the pause container of a refused
// sandbox. kubelet's retry makes a sandbox of the same name, and from then on containerd fails to start with
// "failed to reserve sandbox name" (containerd#13355, #13609). The fix (#13859) is the deferred
// ShutdownSandbox, with rollbackSandbox, in RunPodSandbox of internal/cri/server/sandbox_run.go. 2.0.13,
// 2.0.14, 2.1.8, 2.1.9, 2.2.5 and 2.3.0 to 2.3.2 do not have it; 2.2.6 to 2.2.9, 2.3.3 to 2.3.7 and 2.4.0 do.
//
// 1.7 removes the container in a deferred function (1.7.35, pkg/cri/server/sandbox_run.go, container.Delete
// with cleanupErr == nil). Its experimental server, ENABLE_CRI_SANDBOXES, does not, but it cannot be detected.
var leaky = []struct{ from, until *version.Version }{
	{version.MustParseGeneric("2.0"), version.MustParseGeneric("2.2.6")},
	{version.MustParseGeneric("2.3"), version.MustParseGeneric("2.3.3")},
}

// RuntimeFaults returns why containers may not wait in the gate of a container runtime, and why sandboxes
// may not be refused there. Both are empty if the runtime supports it.
func RuntimeFaults(name, ver string) (gate, sandbox string) {
	if name != runtimeName {
		return fmt.Sprintf("runtime %s is not known to support waiting hooks", name), fmt.Sprintf("runtime %s is not known to remove refused sandboxes", name)
	}
	v, err := version.ParseGeneric(ver)
	if err != nil {
		why := fmt.Sprintf("containerd's version %q is not known", ver)
		return why, why
	}
	if v.LessThan(shimFixed) {
		gate = fmt.Sprintf("containerd %s holds up statistics while a hook waits; %s does not", ver, shimFixed)
	}
	for _, k := range leaky {
		if v.AtLeast(k.from) && v.LessThan(k.until) {
			sandbox = fmt.Sprintf("containerd %s keeps what is left of a refused sandbox, and would not start again; %s does not", ver, k.until)
		}
	}
	return gate, sandbox
}
