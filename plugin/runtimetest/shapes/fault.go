package shapes

import (
	"fmt"
	"slices"
	"time"
)

// Fault is something that happens to the node.
type Fault struct {
	Kind   FaultKind
	At     time.Duration
	Gap    time.Duration // how long what ends is away
	Limits Limits        // the new ones
	Load   Load          // for the Gap
	Step   time.Duration // of the wall clock
}

// Load is what runs on the node beside the pods that start, in percent: of its CPUs, which may be more than 100, and of the
// time in which tasks stall.
type Load struct{ CPU, IOWait, Memory, IO float64 }

// FaultKind says what happens, in words.
type FaultKind string

// The faults.
const (
	DaemonRestarts  FaultKind = "the daemon is restarted"
	ConnectionDrops FaultKind = "the connection of NRI breaks"
	KubeletRestarts FaultKind = "kubelet is restarted"
	RuntimeRestarts FaultKind = "the runtime is killed"
	APIAway         FaultKind = "the API server is away"
	ConfigChanges   FaultKind = "the config changes"
	NodeIsBusy      FaultKind = "the node is busy"
	ClockIsSet      FaultKind = "the wall clock is set"
	SandboxDies     FaultKind = "the sandbox dies of the pod that began to start last"
	CNIChanges      FaultKind = "the CNI configuration changes"
	StateUnusable   FaultKind = "the daemon's state folder cannot be used"
	FileBroken      FaultKind = "the daemon's file is broken, so it does not start"
)

// Disturbs reports whether the daemon, or what it is connected to, stops for a moment.
func (k FaultKind) Disturbs() bool {
	return slices.Contains([]FaultKind{DaemonRestarts, ConnectionDrops, KubeletRestarts, RuntimeRestarts, FileBroken}, k)
}

// Lasts reports whether it ends after its Gap.
func (k FaultKind) Lasts() bool {
	return !slices.Contains([]FaultKind{ConnectionDrops, ConfigChanges, ClockIsSet, SandboxDies, CNIChanges}, k)
}

func (f Fault) String() string {
	switch f.Kind {
	case ConfigChanges:
		return string(f.Kind) + ": " + f.Limits.String()
	case ConnectionDrops, SandboxDies, CNIChanges:
		return string(f.Kind)
	case ClockIsSet:
		return fmt.Sprintf("%s by %s", f.Kind, f.Step)
	case NodeIsBusy:
		return fmt.Sprintf("%s for %s: %+v percent", f.Kind, f.Gap, f.Load)
	}
	return fmt.Sprintf("%s, and back after %s", f.Kind, f.Gap)
}
