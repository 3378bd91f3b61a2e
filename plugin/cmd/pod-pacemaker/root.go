package main

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
)

const rootLong = `pod-pacemaker lets the pods of a node start only as fast as the node can handle.

It is an NRI plugin of containerd and runs once on every node. A pod that is about
to start waits until a slot is free, and gives the slot back when it is ready. The
pod itself is not changed.

A PacemakerConfig sets how fast pods may start. In a cluster the daemon reads it
from the API server. Standalone, without an API server, it reads a file:

  apiVersion: pod-pacemaker.io/v1alpha1
  kind: PacemakerConfig
  metadata: {name: two-at-a-time}
  spec:
    throttleConfig:
      maxConcurrent: {value: 2}

While no daemon runs, pods start without waiting.

Exit codes:
  0   success
  1   failure; standard error has the reason
  64  wrong command line or configuration; a retry does not help`

const rootExample = `  pod-pacemaker preflight                     Does this node have what the daemon needs?
  pod-pacemaker check config.yaml             Is this file valid, and what does it mean?
  pod-pacemaker run --config config.yaml      Pace the pods of this node (as root).
  pod-pacemaker status                        Which pods wait or start, and which limit holds them?
  pod-pacemaker why default/web-0             Why does this pod wait?
  pod-pacemaker costs                         What did starts take on this node?
  pod-pacemaker admit default/web-0           Let this pod start now.
  pod-pacemaker off --for 1h                  Let all pods start without waiting.`

func (p *program) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "pod-pacemaker",
		Short:         "Lets the pods of a node start only as fast as the node can handle",
		Long:          rootLong,
		Example:       rootExample,
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		// It runs when cobra has accepted the command line.
		PersistentPreRun: func(*cobra.Command, []string) { p.accepted = true },
	}
	root.SetVersionTemplate(versionText())
	root.Flags().Bool("version", false, "print the version")
	root.AddCommand(
		p.runCommand(), p.statusCommand(), p.whyCommand(), p.costsCommand(), p.admitCommand(), p.offCommand(), p.onCommand(), p.aliveCommand(), p.checkCommand(), p.convertCommand(), p.preflightCommand(),
		p.copyKubeletConfigCommand(), p.metricsProxyCommand(), p.removeDaemonSetCommand(),
	)
	for _, cmd := range root.Commands() {
		if !strings.Contains(cmd.Use, " FILE") { // else the shell completes files, where no file is meant
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
	}
	return root
}

// needs returns a check that there is an argument, and no more than most. Errors call the argument name.
func needs(name string, most int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return errors.New(name + " is missing")
		case len(args) > most:
			return fmt.Errorf("%q: only one %s is accepted", args[most], name)
		}
		return nil
	}
}

func versionText() string {
	return fmt.Sprintf("pod-pacemaker %s (commit %s, %s, %s/%s)\n", version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
