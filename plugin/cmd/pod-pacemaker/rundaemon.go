package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"sync"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
)

const runLong = `Run paces the pods of this node until it receives SIGTERM or SIGINT. It needs root,
for the runtime's NRI socket, and a runtime with NRI enabled. containerd 2 has it
enabled; for containerd 1.7 see deploy/containerd/nri.toml.

In a cluster (with --kubeconfig, or in a pod with a service account) PacemakerConfig
objects set how fast pods may start, and a watch of this node's pods reports when a
pod is ready. The file of --config applies while no object selects the node. If it is
invalid, the daemon runs without it, and is not ready while no object selects the node.

Standalone, with neither, the file of --config is the only source. A pod then counts
as started when its containers have run for 10s and use little CPU.

If several daemons have the same --run-dir, one of them paces and the others stand
by. When it ends, another takes over.

While the runtime or the API server is away, the daemon keeps trying; /readyz and
'pod-pacemaker status' report it. Under systemd (Type=notify) the daemon reports
that it is ready when it paces pods, or after 10s. Until pods are paced, the unit's
status line has the reason. The daemon feeds the watchdog (WatchdogSec=) as long as
it makes decisions.

Exit codes: 0 stopped by a signal; 1 failure, for example a file of a flag that
cannot be read; 64 wrong flags or configuration, so a restart does not help.`

const runExample = `  # Standalone, from a file:
  pod-pacemaker run --config /etc/pod-pacemaker/config.yaml

  # With the API server, but not in a pod:
  pod-pacemaker run --kubeconfig /etc/kubernetes/pod-pacemaker.conf

  # Check first whether the node has what the daemon needs:
  pod-pacemaker preflight --config /etc/pod-pacemaker/config.yaml`

func (p *program) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:     "run",
		Short:   "Run the daemon, which paces the pods of this node",
		Long:    runLong,
		Example: runExample,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.resolve(cmd, p.env); err != nil {
				return err
			}
			return p.runDaemon(cmd.Context(), &f)
		},
	}
	f.add(cmd)
	return cmd
}

// memoryRoom is what the Go runtime leaves below GOMEMLIMIT, which is the limit of the cgroup: the kernel counts more there
// than the Go runtime knows of.
const memoryRoom = 16 << 20

// runDaemon runs the daemon until ctx ends or a signal arrives.
func (p *program) runDaemon(ctx context.Context, f *runFlags) error {
	debug.SetMemoryLimit(debug.SetMemoryLimit(-1) - memoryRoom)
	ctx, stop := untilSignal(ctx)
	defer stop()
	log, queue := newLogger(f.log, p.stderr)
	defer runLog(queue)()
	p.onLogger(log)
	f.Log, f.LogDropped = log, queue.Dropped
	f.InPod = p.inPod
	d, err := p.newDaemon(f.Options)
	switch {
	case errors.Is(err, crd.ErrInvalid):
		return invalidIn(f.ConfigFile, err)
	case err != nil: // a retry may help: a missing file may be written later
		return fmt.Errorf("prepare the daemon: %w", err)
	}
	log.WithFields(logrus.Fields{
		"version": f.Version, "node": f.NodeName, "standalone": f.Standalone(), "nri_socket": f.NRISocket,
	}).Info("starting")

	ctx, cancel := context.WithCancel(ctx)
	var unit sync.WaitGroup
	unit.Go(func() {
		(&systemdUnit{daemon: d, log: log, readyMost: readyMost, statusEvery: statusEvery}).serve(ctx)
	})
	err = d.Run(ctx)
	cancel()
	unit.Wait()
	if errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0 {
		return fmt.Errorf("run: %w: the daemon needs root", err)
	}
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	log.Info("stopped")
	return nil
}
