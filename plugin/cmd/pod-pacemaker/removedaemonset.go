package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
)

const removeDaemonSetLong = `Remove-daemonset deletes the DaemonSet of the daemons, and waits until the last of
their pods has ended. Each daemon removes its files from the host meanwhile, for which
it needs its rights. The chart runs it before 'helm uninstall' removes these rights.

It waits as long as pods end, and says how many are left. If none has ended for the
timeout, it fails, unless all that are left were told to end: their nodes are down. It
names these nodes and ends with 0, so that they do not hold up the rest. The files on
these nodes stay.`

// countEvery is the time between two counts of the pods that are left: in a large cluster, their list is long.
const countEvery = 10 * time.Second

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
			return removal{
				sets: client.DaemonSets(namespace), pods: client.Pods(namespace), out: p.stdout, called: args[0], name: name, timeout: timeout,
			}.run(ctx)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 2*time.Minute, "how long to wait while no daemon ends")
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "`file` with access to the API server (empty: the pod's service account)")
	return cmd
}

// removal deletes the DaemonSet with this name. called is how out calls it, and timeout how long it waits while no pod
// ends.
type removal struct {
	sets         kube.DaemonSets
	pods         kube.Follow
	out          io.Writer
	called, name string
	timeout      time.Duration
}

// left is how many pods of the DaemonSet there are.
type left struct {
	pods  int
	kept  int      // those that were not told to end
	nodes []string // of the others
}

// run deletes the DaemonSet, and blocks until it is gone with its pods, or until no pod ends any more.
func (r removal) run(ctx context.Context) error {
	afterPods := metav1.DeletePropagationForeground
	err := r.sets.Delete(ctx, r.name, metav1.DeleteOptions{PropagationPolicy: &afterPods})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the DaemonSet %s: %w", r.called, err)
	}
	last, ended, counted := left{pods: math.MaxInt}, time.Now(), time.Time{}
	for tick := time.Tick(time.Second); ; {
		set, err := r.sets.Get(ctx, r.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return r.say("the DaemonSet %s and its pods are gone", r.called)
		}
		now := time.Now()
		if err == nil && now.Sub(counted) >= countEvery {
			var have left
			if have, err = r.count(ctx, set); err == nil {
				counted = now
				if have.pods < last.pods {
					ended = now
					_ = r.say("%d pods of the DaemonSet %s are left", have.pods, r.called) // it is no result
				}
				last = have
			}
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case apierrors.IsForbidden(err):
			return fmt.Errorf("look for the DaemonSet %s and its pods: %w", r.called, err)
		case now.Sub(ended) < r.timeout: // also after another error: the API server may be away for a moment
		case err != nil:
			return fmt.Errorf("cannot tell for %s whether pods of the DaemonSet %s are left: %w", r.timeout, r.called, err)
		case last.kept > 0:
			return fmt.Errorf("no pod of the DaemonSet %s ended for %s, and %d of %d were not told to end: without their rights, their daemons would leave"+
				" their files on the nodes. Kubernetes' garbage collector deletes these pods (kube-controller-manager); run this again once it works",
				r.called, r.timeout, last.kept, last.pods)
		default:
			return r.say("%d pods of the DaemonSet %s have not ended for %s: on these nodes the daemon's files may stay: %s",
				last.pods, r.called, r.timeout, strings.Join(last.nodes, " "))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick:
		}
	}
}

// count returns what is left of a DaemonSet's pods.
func (r removal) count(ctx context.Context, set *appsv1.DaemonSet) (have left, _ error) {
	selector := metav1.FormatLabelSelector(set.Spec.Selector)
	// Version 0 is what the API server has in its memory. A pod may be newer than that, and is counted the next time.
	_, err := r.pods.Each(ctx, metav1.ListOptions{LabelSelector: selector, ResourceVersion: "0"}, func(o runtime.Object) {
		pod, ok := o.(*corev1.Pod)
		switch {
		case !ok || !metav1.IsControlledBy(pod, set):
			return
		case pod.DeletionTimestamp == nil:
			have.kept++
		default:
			have.nodes = append(have.nodes, pod.Spec.NodeName)
		}
		have.pods++
	})
	return have, err
}

// say writes a line.
func (r removal) say(format string, args ...any) error {
	_, err := fmt.Fprintf(r.out, format+"\n", args...)
	return err
}
