package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
)

const runLong = `Run paces the pods of this node until it is told to stop (SIGTERM or SIGINT). It
needs root, for the runtime's NRI socket, and a runtime with NRI enabled, as it is
in containerd 2. (For containerd 1.7: deploy/containerd/nri.toml.)

In a cluster (--kubeconfig, or in a pod with a service account) the PacemakerConfig
objects of the API server say how fast pods may start, and a watch of this node's
pods says when a pod is ready. --config is the fallback while no object selects the
node.

Standalone, with neither, --config is the only source, and a pod counts as started
when its containers have run for 10s and use little CPU.

Of several daemons with the same --run-dir one paces; the others stand by, and the
next takes over when it ends.

A runtime can start the daemon itself, as one of its NRI plugins. It then needs no
arguments, and takes its flags from the text with which NRI configures it.

While the runtime or the API server is away the daemon keeps trying; /readyz and
'pod-pacemaker status' say so. Under systemd (Type=notify) it reports that it is
ready when it is connected and paces, and after 10s in any case; its status line
then says why pods start unpaced. It feeds the watchdog (WatchdogSec=) as long as
it makes decisions.

Exit codes: 0 stopped by a signal; 1 failed, for example because a file that a flag
names cannot be read; 64 wrong flags or configuration, so starting again does not
help.`

const runExample = `  # Standalone, from a file:
  pod-pacemaker run --config /etc/pod-pacemaker/config.yaml

  # With the API server, outside of a pod:
  pod-pacemaker run --kubeconfig /etc/kubernetes/pod-pacemaker.conf --node-name worker-3

  # Is everything there that it needs?
  pod-pacemaker preflight --config /etc/pod-pacemaker/config.yaml`

func (p *program) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:     "run",
		Short:   "Pace the pods of this node",
		Long:    runLong,
		Example: runExample,
		Args:    takes(),
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

// makeDaemon makes the daemon. Only what a restart cannot mend is an invalid
// configuration: a file that is not there may be written yet.
func (p *program) makeDaemon(f *runFlags) (daemon, error) {
	d, err := p.newDaemon(f.Options)
	switch {
	case errors.Is(err, crd.ErrInvalid):
		err = invalidIn(f.ConfigFile, err)
	case err != nil:
		err = fmt.Errorf("prepare: %w", err)
	}
	return d, err
}

// runDaemon runs the daemon until ctx ends.
func (p *program) runDaemon(ctx context.Context, f *runFlags) error {
	log, queue := newLogger(f.log, p.stderr)
	defer runLog(queue)()
	p.onLogger(log)
	f.Log, f.LogDropped = log, queue.Dropped
	d, err := p.makeDaemon(f)
	if err != nil {
		return err
	}
	log.WithFields(logrus.Fields{
		"version": f.Version, "node": f.NodeName, "standalone": f.Standalone(), "nri_socket": f.NRISocket,
	}).Info("begins")

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
	log.Info("ends")
	return nil
}
