package lab

import (
	"context"
	"os"

	"github.com/pod-pacemaker/pod-pacemaker/integration/lab/keeper"
)

// Run names one run of the lab; see keeper.Run.
type Run = keeper.Run

// NodeIP is the address of a cluster's node inside the run's network.
const NodeIP = keeper.NodeIP

// runParent is the default folder for the folders of runs.
func runParent(dir string) string {
	if dir == "" {
		return os.TempDir()
	}
	return dir
}

// Remains lists what is still on the machine of a run, one line each: its folder, processes, mounts
// and cgroups. Its network ends with its processes.
func Remains(run Run) ([]string, error) { return keeper.Remains(run) }

// Sweep removes what killed runs left below parent ("" is the default) and returns these runs.
// StartRuntime and StartCluster do this first.
func Sweep(ctx context.Context, parent string) ([]Run, error) {
	return keeper.Sweep(ctx, runParent(parent))
}

// Runs lists the runs below parent ("" is the default), dead or alive.
func Runs(parent string) ([]Run, error) { return keeper.Runs(runParent(parent)) }
