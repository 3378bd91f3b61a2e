package waiting

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
)

// runtime is what the runtime that the daemon is connected to does not bear.
type runtime struct {
	barsGate    string        // why containers do not wait in the gate; empty: they may
	barsSandbox string        // why nothing is refused at the sandbox, whatever the options say; empty: it may be
	timeout     time.Duration // after which it gives a handler up; 0: not known yet
}

// notConnected stands for the runtime until the daemon is connected to one.
var notConnected = &runtime{barsGate: "the runtime is not known yet"}

// runtimeName is how the runtime calls itself that bears waiting hooks.
const runtimeName = "containerd"

// shimFixed is the first containerd whose shim answers others while a container
// is being made; before it, a container that waits in the gate blocks the whole
// node's statistics.
var shimFixed = version.MustParseGeneric("2.3.2")

// keeps are the versions, each from one on until one that is free of it, that keep what is left of a
// refused sandbox: its record and the pause container. kubelet's retry makes another of the same name, and
// the next start of containerd ends with "failed to reserve sandbox name", for ever (containerd#13355,
// #13609). What repaired it (#13859) is the deferred ShutdownSandbox, with rollbackSandbox, in
// RunPodSandbox of internal/cri/server/sandbox_run.go. It was looked for in 2.0.13, 2.0.14, 2.1.8, 2.1.9 and
// 2.2.5, which do not have it; in 2.2.6 to 2.2.9, which do; in 2.3.0 to 2.3.2, not; in 2.3.3 to 2.3.7 and 2.4.0, which do.
//
// 1.7 deletes the sandbox's container in a deferred function (1.7.35, pkg/cri/server/sandbox_run.go,
// container.Delete with cleanupErr == nil), but for its experimental server, ENABLE_CRI_SANDBOXES, which
// nothing tells of.
var keeps = []struct{ from, until *version.Version }{
	{version.MustParseGeneric("2.0"), version.MustParseGeneric("2.2.6")},
	{version.MustParseGeneric("2.3"), version.MustParseGeneric("2.3.3")},
}

// RuntimeFaults tells what a container runtime of that name and version does not bear:
// why containers do not wait in the gate there, and why nothing is refused at the
// sandbox. Both are empty where it bears them.
func RuntimeFaults(name, ver string) (gate, sandbox string) {
	if name != runtimeName {
		return fmt.Sprintf("runtime %s is not known to bear waiting hooks", name), fmt.Sprintf("runtime %s is not known to take refused sandboxes down", name)
	}
	v, err := version.ParseGeneric(ver)
	if err != nil {
		why := fmt.Sprintf("containerd's version %q is not known", ver)
		return why, why
	}
	if v.LessThan(shimFixed) {
		gate = fmt.Sprintf("containerd %s holds up statistics while a hook waits; %s does not", ver, shimFixed)
	}
	for _, k := range keeps {
		if v.AtLeast(k.from) && v.LessThan(k.until) {
			sandbox = fmt.Sprintf("containerd %s keeps what is left of a refused sandbox, and would not start again; %s does not", ver, k.until)
		}
	}
	return gate, sandbox
}
