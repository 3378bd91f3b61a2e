package report

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

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
	r.summing = time.Now()
	// All daemons of a cluster may have started at the same moment.
	for next := rand.N(leastSum / 10); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
		mine, err := r.sumIfDue(ctx, all)
		if r.known() {
			next = wait.Jitter(sumInterval(r.Nodes()), 0.5)
		} else {
			next = laterStill(next, err)
		}
		if (mine || err != nil) && ctx.Err() == nil {
			r.sumFaults.Try(r.Log, err, "cannot sum up the PacemakerNodes, so the status of StartPolicies and PacemakerConfigs may be out of date; trying again",
				"the status of every StartPolicy and PacemakerConfig is written again")
		}
	}
}

// sumIfDue sums up if that is due, no other daemon does it, and this daemon has written its own PacemakerNode: the time of
// that says which of the others are old. Where it has not for a heartbeat, as without the right, it sums up
// nevertheless: nobody else may be able to say that a configuration is invalid. mine reports whether this daemon did.
func (r *Reporter) sumIfDue(ctx context.Context, all Summed) (mine bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, sumTimeout(r.Nodes()))
	defer cancel()
	lease, due, err := r.read(ctx)
	own := r.reported.Load()
	if own == nil && time.Since(r.summing) >= heartbeat {
		own = &metav1.Time{} // this daemon cannot write its own, and takes no other for old
	}
	if err != nil || !due || own == nil {
		return false, err
	}
	// Before the list, because many daemons may find a sum due in the time that a list takes.
	if mine, err = r.take(ctx, lease); !mine || err != nil {
		return false, err
	}
	t := newTally(all)
	if err = r.eachReport(ctx, *own, t.add); err != nil {
		r.seenAt = r.seenAt.Add(sumInterval(r.Nodes())) // another daemon, which may be able to list, is next
		return false, err
	}
	r.setNodes(t.nodes)
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, nodesAnnotation, strconv.Itoa(t.nodes))
	if mine, err = r.take(ctx, lease); !mine || err != nil {
		return false, err
	}
	if !r.begun {
		r.begun = true
		r.Log.WithField("lease", r.Lease).Info("this daemon takes turns with others to sum up the PacemakerNodes")
	}
	return true, r.writeSums(ctx, t)
}

// writeSums writes each status that has changed.
func (r *Reporter) writeSums(ctx context.Context, t *tally) error {
	var sums []func() error
	now := time.Now()
	for _, p := range t.policies {
		sums = append(sums, func() error {
			return sum(ctx, r.API.Resource(v1alpha1.PolicyResource), v1alpha1.PolicyKind, p.policy.ObjectMeta,
				func(before v1alpha1.StartPolicyStatus) v1alpha1.StartPolicyStatus { return p.status(now, before) })
		})
	}
	for _, c := range t.configs {
		sums = append(sums, func() error {
			return sum(ctx, r.API.Resource(v1alpha1.Resource), v1alpha1.Kind, c.config.ObjectMeta,
				func(before v1alpha1.PacemakerConfigStatus) v1alpha1.PacemakerConfigStatus {
					return c.status(now, before)
				})
		})
	}
	var faults []error
	for _, i := range rand.Perm(len(sums)) { // if time does not suffice for all, it is not always lacking for the same ones
		if err := sums[i](); err != nil {
			faults = append(faults, err)
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d objects; the first: %w", len(faults), len(sums), faults[0])
}

// eachReport calls f with the status of each PacemakerNode of this instance, in the order of their names. It leaves out
// those that were written more than NodeGoneAfter before the time own, when this node's was written: their daemons are gone
// and could not report that they were stopped. Both times are by the API server's clock. At most one page of
// PacemakerNodes is in memory. So there is no second try without pages, as client-go's pager makes it, if the version
// of the first page is too old for the next one.
func (r *Reporter) eachReport(ctx context.Context, own metav1.Time, f func(v1alpha1.PacemakerNodeStatus)) error {
	for o := (metav1.ListOptions{Limit: nodesInPage}); ; {
		page, err := r.API.Resource(v1alpha1.NodeResource).List(ctx, o)
		if err != nil {
			return fmt.Errorf("list the PacemakerNodes: %w", err)
		}
		for i := range page.Items {
			u := &page.Items[i]
			status := statusOf[v1alpha1.PacemakerNodeStatus](u)
			if status.Instance == r.Instance && status.LastReportTime != nil && own.Sub(writtenAt(u).Time) <= v1alpha1.NodeGoneAfter {
				f(status)
			}
		}
		if o.Continue = page.GetContinue(); o.Continue == "" {
			return nil
		}
	}
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
	object, _ := u.Object["status"].(map[string]any)
	if runtime.DefaultUnstructuredConverter.FromUnstructured(object, &status) != nil {
		var none T
		return none
	}
	return status
}

// sum writes the status of an object, which of returns for the present one, if it has changed and the object is there. If
// the object has another generation than the one that was summed up, the watch of this daemon is behind, and the status
// stays: the next daemon knows more.
func sum[S any](ctx context.Context, api dynamic.ResourceInterface, kind string, object metav1.ObjectMeta, of func(before S) S) error {
	u, err := api.Get(ctx, object.Name, metav1.GetOptions{})
	if err == nil {
		if u.GetGeneration() != object.Generation {
			return nil
		}
		before := statusOf[S](u)
		status := of(before)
		if equality.Semantic.DeepEqual(before, status) {
			return nil
		}
		_, err = replaceStatus(ctx, api, object.Name, status, map[string]any{"/metadata/uid": object.UID})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("write the status of %s %s: %w", kind, object.Name, err)
	}
	return nil
}
