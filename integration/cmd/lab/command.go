package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"
)

func command() *cobra.Command {
	root := &cobra.Command{
		Use:   "lab",
		Short: "A real one-node Kubernetes cluster for trying pod-pacemaker",
		Long: `Lab starts a one-node cluster on this machine: etcd, kube-apiserver,
kube-controller-manager, kube-scheduler, containerd, runc and kubelet, all built
from Go modules. It needs root, Go and gcc.

The cluster has a folder, a cgroup, a mount namespace and a network of its own,
and leaves nothing behind. What it builds is kept in $POD_PACEMAKER_CACHE, else in
pod-pacemaker in the user's cache folder. Its folder is below $TMPDIR, else /tmp.`,
		Example: `  lab build     build all parts (about ten minutes on two cores, the first time)
  lab up        start a cluster that lives on, and print how to reach it
  lab status    which clusters are there
  lab down      stop them and remove all they left`,
		SilenceUsage: true, SilenceErrors: true, Args: cobra.NoArgs,
	}
	v := &verbs{out: os.Stdout, err: os.Stderr}
	verb := func(name, short string, run func(ctx context.Context) error) *cobra.Command {
		cmd := &cobra.Command{
			Use: name, Short: short, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context()) },
		}
		root.AddCommand(cmd)
		return cmd
	}
	verb("build", "Build all parts that the cache does not hold", v.build)
	up := verb("up", "Start a cluster that lives on, and print how to reach it", v.up)
	up.Flags().StringToStringVar(&v.labels, "label", nil, "a label of the node, name=value")
	verb("down", "Stop the clusters that up started, and remove all they left", v.down)
	verb("status", "Print how to reach the clusters that up started", v.status)
	verb("sweep", "Remove what killed runs left behind", v.sweep)
	return root
}
