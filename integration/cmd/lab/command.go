package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// The exit codes.
const (
	exitOK = iota
	exitFailure
	exitUsage
	exitNothing
)

const long = `Lab starts a one-node cluster on this machine: etcd, kube-apiserver,
kube-controller-manager, kube-scheduler, containerd, runc and kubelet, all built
from Go modules. It needs root, Go and gcc.

The cluster has a folder, a cgroup, a mount namespace and a network of its own,
and leaves nothing behind. What it builds is kept in $POD_PACEMAKER_CACHE, else in
pod-pacemaker in the user's cache folder. Its folder is below $TMPDIR, else /tmp.
The logs of a cluster are gone with it, unless $POD_PACEMAKER_LAB_LOGS names a
folder to keep them in.

Exit codes: 0 done, 1 failed, 2 wrong command line, 3 (status) no cluster is up.`

// run is the program. It returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cmd := command(stdout, stderr)
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	err := cmd.ExecuteContext(ctx)
	var usage *usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errNothingUp):
		fmt.Fprintln(stderr, "lab:", err)
		return exitNothing
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "lab: %v (lab --help says more)\n", err)
		return exitUsage
	default:
		fmt.Fprintln(stderr, "lab:", err)
		return exitFailure
	}
}

// usageError is an error in the command line.
type usageError struct{ cause error }

func (e *usageError) Error() string { return e.cause.Error() }
func (e *usageError) Unwrap() error { return e.cause }

func command(stdout, stderr io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:   "lab",
		Short: "A real one-node Kubernetes cluster for trying pod-pacemaker",
		Long:  long,
		Example: `  lab build             build all parts (about ten minutes on two cores, the first time)
  eval "$(lab up)"      start a cluster that lives on, and have kubectl and helm talk to it; $VALUES
                        are the chart's values there, $HERD is the quickstart's herd, and its node
                        has the image of bin/
  lab status            print again how to reach it
  lab down              stop it and remove all it left`,
		SilenceUsage: true, SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:              noArguments,
		RunE: func(*cobra.Command, []string) error {
			return &usageError{errors.New("it needs a verb: build, up, down, status or sweep")}
		},
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	v := &verbs{out: stdout, err: stderr}
	up := verb("up", "Start a cluster that keeps running, and print how to reach it", v.up)
	up.Flags().StringToStringVar(&v.labels, "label", nil, "a label of the node, `name=value`; may be repeated")
	root.AddCommand(
		verb("build", "Build all parts that the cache does not hold", v.build),
		up,
		verb("down", "Stop the clusters that up started, and remove all that they left", v.down),
		verb("status", "Print how to reach the clusters that up started", v.status),
		verb("sweep", "Remove what killed runs left; every start does so too", v.sweep),
	)
	return root
}

func verb(name, short string, do func(ctx context.Context) error) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return do(cmd.Context()) },
	}
}

func noArguments(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case cmd.HasSubCommands():
		return &usageError{fmt.Errorf("there is no verb %q", args[0])}
	default:
		return &usageError{fmt.Errorf("%s takes no arguments: %q", cmd.Name(), args[0])}
	}
}
