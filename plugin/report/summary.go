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
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// Summed are the objects of this instance whose status RunSummary writes. The functions must not block.
type Summed struct {
	Policies func() []crd.KnownPolicy
	Configs  func() []crd.KnownConfig
}

// RunSummary writes the status of the StartPolicies and the PacemakerConfigs, and counts the nodes of the cluster, when
// that is due and no other daemon does it, until ctx ends. It blocks. Only one call may run at a time. It logs each error
// once and tries again.
func (r *Reporter) RunSummary(ctx context.Context, all Summed) {
	// All daemons of a cluster may have started at the same moment.
	for next := rand.N(leastSum / 10); ; next = wait.Jitter(sumInterval(r.Nodes()), 0.5) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
		if mine, err := r.sumIfDue(ctx, all); (mine || err != nil) && ctx.Err() == nil {
			r.sumFaults.Try(r.Log, err, "cannot sum up the PacemakerNodes, so the status of StartPolicies and PacemakerConfigs may be out of date; trying again",
				"the status of every StartPolicy and PacemakerConfig is written again")
		}
	}
}

// sumIfDue sums up if that is due and no other daemon does it. mine reports whether this daemon did.
func (r *Reporter) sumIfDue(ctx context.Context, all Summed) (mine bool, err error) {
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
	var sums []func() error
	now := time.Now()
	for _, policy := range all.Policies() {
		sums = append(sums, func() error {
			return sum(ctx, r.API.Resource(v1alpha1.PolicyResource), v1alpha1.PolicyKind, policy.ObjectMeta,
				func(before v1alpha1.StartPolicyStatus) v1alpha1.StartPolicyStatus {
					return sumPolicy(now, policy, nodes, before)
				})
		})
	}
	for _, config := range all.Configs() {
		sums = append(sums, func() error {
			return sum(ctx, r.API.Resource(v1alpha1.Resource), v1alpha1.Kind, config.ObjectMeta,
				func(before v1alpha1.PacemakerConfigStatus) v1alpha1.PacemakerConfigStatus {
					return sumConfig(now, config, nodes, before)
				})
		})
	}
	faults := make([]error, len(sums))
	for _, i := range rand.Perm(len(sums)) { // if time does not suffice for all, it is not always lacking for the same ones
		faults[i] = sums[i]()
	}
	return true, errors.Join(faults...)
}

// reports returns the status of the PacemakerNodes of this instance, in the order of their names, each with the time at
// which it was written by the API server's clock. It leaves out those that were written more than NodeGoneAfter before
// the status of this node: their daemons are gone and could not report that they were stopped. If this node has none,
// the newest counts.
func (r *Reporter) reports(ctx context.Context) (there []v1alpha1.PacemakerNodeStatus, err error) {
	var latest metav1.Time // not the newest in any case, which may be of a time when the API server's clock was ahead
	mine := false
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return r.API.Resource(v1alpha1.NodeResource).List(ctx, o)
	}
	err = pager.New(list).EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		u, _ := object.(*unstructured.Unstructured) // the list holds nothing else
		status := statusOf[v1alpha1.PacemakerNodeStatus](u)
		if status.Instance != r.Instance || status.LastReportTime == nil {
			return nil
		}
		status.Version, status.Signal = "", "" // not needed here
		for i := range status.Conditions {
			status.Conditions[i].Message = ""
		}
		status.LastReportTime = writtenAt(u)
		switch {
		case u.GetName() == r.Object:
			latest, mine = *status.LastReportTime, true
		case !mine && latest.Before(status.LastReportTime):
			latest = *status.LastReportTime
		}
		there = append(there, status)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the PacemakerNodes: %w", err)
	}
	return slices.DeleteFunc(there, func(n v1alpha1.PacemakerNodeStatus) bool {
		return latest.Sub(n.LastReportTime.Time) > v1alpha1.NodeGoneAfter
	}), nil
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

// sum writes the status of an object, which of returns for the present one, if it has changed and the object is there.
func sum[S any](ctx context.Context, api dynamic.ResourceInterface, kind string, object metav1.ObjectMeta, of func(before S) S) error {
	u, err := api.Get(ctx, object.Name, metav1.GetOptions{})
	if err == nil {
		before := statusOf[S](u)
		status := of(before)
		if equality.Semantic.DeepEqual(before, status) {
			return nil
		}
		err = replaceStatus(ctx, api, object.Name, status, map[string]any{"/metadata/uid": object.UID})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("write the status of %s %s: %w", kind, object.Name, err)
	}
	return nil
}
