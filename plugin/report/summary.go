package report

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/pager"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// RunSummary writes the status of the StartPolicies and counts the nodes of the cluster when that is due and no other
// daemon does it, until ctx ends. policies returns the StartPolicies of this instance, and must not block. RunSummary
// blocks. Only one call may run at a time. It logs each error once and tries again.
func (r *Reporter) RunSummary(ctx context.Context, policies func() []crd.KnownPolicy) {
	// All daemons of a cluster may have started at the same moment.
	for next := rand.N(leastSum / 10); ; next = wait.Jitter(sumInterval(r.Nodes()), 0.5) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
		if mine, err := r.sumIfDue(ctx, policies); (mine || err != nil) && ctx.Err() == nil {
			r.sumFaults.Try(r.Log, err, "cannot sum up the PacemakerNodes, so the status of StartPolicies may be out of date; trying again",
				"the status of every StartPolicy is written again")
		}
	}
}

// sumIfDue sums up if that is due and no other daemon does it. mine reports whether this daemon did.
func (r *Reporter) sumIfDue(ctx context.Context, policies func() []crd.KnownPolicy) (mine bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, sumTimeout)
	defer cancel()
	lease, due, err := r.read(ctx)
	if err != nil || !due {
		return false, err
	}
	// Before the list, because many daemons may find a sum due in the time that a list takes.
	if mine, err = r.take(ctx, lease); !mine || err != nil {
		return false, err
	}
	nodes, err := r.reports(ctx)
	if err != nil {
		r.seenAt = r.seenAt.Add(sumInterval(r.Nodes())) // another daemon, which may be able to list, is next
		return false, err
	}
	r.setNodes(len(nodes))
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, nodesAnnotation, strconv.Itoa(r.Nodes()))
	if mine, err = r.take(ctx, lease); !mine || err != nil {
		return false, err
	}
	if !r.begun {
		r.begun = true
		r.Log.WithField("lease", r.Lease).Info("this daemon takes turns with others to sum up the PacemakerNodes")
	}
	all := policies()
	faults := make([]error, len(all))
	for _, i := range rand.Perm(len(all)) { // if time does not suffice for all, it is not always lacking for the same ones
		if err := r.sum(ctx, all[i], nodes); err != nil && !apierrors.IsNotFound(err) {
			faults[i] = fmt.Errorf("write the status of StartPolicy %s: %w", all[i].Name, err)
		}
	}
	return true, errors.Join(faults...)
}

// reports returns the status of the PacemakerNodes of this instance, in the order of their names, each with the time at
// which it was written by the API server's clock. It leaves out those that were written more than goneAfter before that
// of this node: their daemons are gone and could not report that they were stopped. If this node has none, the newest
// counts.
func (r *Reporter) reports(ctx context.Context) (there []v1alpha1.PacemakerNodeStatus, err error) {
	var latest metav1.Time // not the newest in any case, which may be of a time when the API server's clock was ahead
	mine := false
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return r.API.Resource(v1alpha1.NodeResource).List(ctx, o)
	}
	err = pager.New(list).EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		u, _ := object.(*unstructured.Unstructured) // the list holds nothing else
		status := statusOf[v1alpha1.PacemakerNodeStatus](u)
		if status.Instance != r.Instance || status.Written == nil {
			return nil
		}
		status.Message, status.Version, status.Signal = "", "", "" // not needed here
		status.Written = writtenAt(u)
		switch {
		case u.GetName() == r.Object:
			latest, mine = *status.Written, true
		case !mine && latest.Before(status.Written):
			latest = *status.Written
		}
		there = append(there, status)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the PacemakerNodes: %w", err)
	}
	return slices.DeleteFunc(there, func(n v1alpha1.PacemakerNodeStatus) bool { return latest.Sub(n.Written.Time) > goneAfter }), nil
}

// writtenAt returns when the status of an object was last written, by the API server's clock.
func writtenAt(u *unstructured.Unstructured) *metav1.Time {
	at := &metav1.Time{}
	for _, f := range u.GetManagedFields() {
		if f.Subresource == "status" && at.Before(f.Time) {
			at = f.Time
		}
	}
	return at
}

// statusOf returns the status of an object. It returns the zero value if there is no valid status, which the caller
// then replaces.
func statusOf[T any](u *unstructured.Unstructured) (status T) {
	object, _, err := unstructured.NestedMap(u.Object, "status")
	if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(object, &status) != nil {
		var none T
		return none
	}
	return status
}

// sum writes the status of a policy if it has changed.
func (r *Reporter) sum(ctx context.Context, policy crd.KnownPolicy, nodes []v1alpha1.PacemakerNodeStatus) error {
	api := r.API.Resource(v1alpha1.PolicyResource)
	u, err := api.Get(ctx, policy.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	before := statusOf[v1alpha1.StartPolicyStatus](u)
	status := sumPolicy(time.Now(), policy, nodes, before)
	if equality.Semantic.DeepEqual(before, status) {
		return nil
	}
	return replaceStatus(ctx, api, policy.Name, status, map[string]any{"/metadata/uid": policy.UID})
}
