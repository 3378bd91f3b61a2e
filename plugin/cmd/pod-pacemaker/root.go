package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

const rootLong = `pod-pacemaker lets the pods of a node start only as fast as the node can bear.

It is an NRI plugin of containerd, and runs once on every node. A pod that is
about to start waits until a slot is free, and gives its slot back when it is
ready. Nothing about the pod changes.

A PacemakerConfig says how fast pods may start. In a cluster the daemon takes it
from the API server; standalone, without an API server, from a file:

  apiVersion: pod-pacemaker.io/v1alpha1
  kind: PacemakerConfig
  metadata: {name: two-at-a-time}
  spec:
    throttleConfig:
      maxConcurrent: {value: 2}

Without the daemon, pods start.

Exit codes:
  0   done
  1   it could not be done; standard error says why
  64  the command line or a configuration is wrong, so trying again does not help`

const rootExample = `  pod-pacemaker preflight                     does this node have what it needs?
  pod-pacemaker check config.yaml             is this file valid, and what does it mean?
  pod-pacemaker run --config config.yaml      pace the pods of this node (as root)
  pod-pacemaker status                        what waits, what starts, and what holds it
  pod-pacemaker why default/web-0             why does this pod wait?
  pod-pacemaker costs                         what did starts take on this node?`

func (p *program) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "pod-pacemaker",
		Short:         "Lets the pods of a node start only as fast as the node can bear",
		Long:          rootLong,
		Example:       rootExample,
		Args:          knownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &wrongUsage{err.Error()} })
	root.AddCommand(
		p.runCommand(), p.statusCommand(), p.whyCommand(), p.costsCommand(), p.aliveCommand(), p.checkCommand(), p.preflightCommand(),
		p.installGateCommand(), p.copyKubeletConfigCommand(), p.metricsProxyCommand(), p.versionCommand(),
	)
	return root
}

// knownCommand refuses what is no command, and names those that look like it.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	why := fmt.Sprintf("there is no command %q", args[0])
	cmd.SuggestionsMinimumDistance = 2
	if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
		why += "; did you mean " + strings.Join(like, " or ") + "?"
	}
	return &wrongUsage{why}
}

// takes wants exactly these arguments, named for people.
func takes(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return &wrongUsage{names[len(args)] + " is missing"}
		case len(args) > len(names):
			return &wrongUsage{fmt.Sprintf("%q is one argument too many", args[len(names)])}
		}
		return nil
	}
}
