package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
)

const removeDaemonSetLong = `Remove-daemonset deletes the DaemonSet of the daemons, and waits until the last of
their pods has ended. Each daemon removes its files from the host meanwhile, for which
it needs its rights. The chart runs it before 'helm uninstall' removes these rights.

After the timeout it says so and ends with 0, so that a node that is down does not
hold up the rest: its files stay.`

func (p *program) removeDaemonSetCommand() *cobra.Command {
	var kubeconfig string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:     "remove-daemonset NAMESPACE/NAME",
		Short:   "Delete the daemons' DaemonSet and wait until they have ended; the chart runs it",
		Long:    removeDaemonSetLong,
		Example: "  pod-pacemaker remove-daemonset pod-pacemaker/pod-pacemaker",
		Args:    needs("NAMESPACE/NAME", 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace, name, ok := strings.Cut(args[0], "/")
			if !ok || namespace == "" || name == "" {
				return invalidUsage("%q: must be NAMESPACE/NAME of a DaemonSet", args[0])
			}
			access, err := kube.Access(kubeconfig, "pod-pacemaker-remove-daemonset/"+version)
			if err != nil {
				return err
			}
			client, err := kube.New(access)
			if err != nil {
				return err
			}
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			return removeDaemonSet(ctx, p.stdout, client.DaemonSets(namespace), args[0], name, timeout)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 2*time.Minute, "how long to wait for the daemons to end")
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "`file` with access to the API server (empty: the pod's service account)")
	return cmd
}

// removeDaemonSet deletes the DaemonSet with this name, and blocks until it is gone with its pods, or until the timeout. It
// writes to out how that ended. called is how it calls the DaemonSet.
func removeDaemonSet(ctx context.Context, out io.Writer, sets kube.DaemonSets, called, name string, timeout time.Duration) error {
	afterPods := metav1.DeletePropagationForeground
	err := sets.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &afterPods})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the DaemonSet %s: %w", called, err)
	}
	said := "the DaemonSet " + called + " and its pods are gone"
	gone := func(ctx context.Context) (bool, error) {
		_, err := sets.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if apierrors.IsForbidden(err) {
			return false, fmt.Errorf("look for the DaemonSet %s: %w", called, err)
		}
		return false, nil // also after another error: the API server may be away for a moment
	}
	if err := wait.PollUntilContextTimeout(ctx, time.Second, timeout, true, gone); err != nil {
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		said = fmt.Sprintf("after %s, pods of the DaemonSet %s are still there: on their nodes the daemon's files may stay", timeout, called)
	}
	_, err = fmt.Fprintln(out, said)
	return err
}
