package report

import (
	"context"
	"fmt"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodesAnnotation of the Lease has the number of nodes whose daemons report.
const nodesAnnotation = "pod-pacemaker.io/nodes"

// read returns the Lease, and whether the next sum is due because the Lease has not changed for the interval. If there is
// no Lease yet, it returns one without a name. The interval counts from when this daemon saw the change, so
// clocks of different nodes are not compared.
func (r *Reporter) read(ctx context.Context) (lease *coordinationv1.Lease, due bool, err error) {
	lease, err = r.Leases.Get(ctx, r.Lease, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return &coordinationv1.Lease{}, true, nil
	case err != nil:
		return nil, false, fmt.Errorf("read the Lease %s: %w", r.Lease, err)
	}
	if n, err := strconv.Atoi(lease.Annotations[nodesAnnotation]); err == nil {
		r.setNodes(n)
	}
	now := time.Now()
	if seen := fmt.Sprint(lease.Spec.RenewTime); seen != r.seen {
		r.seen, r.seenAt = seen, now
	}
	return lease, now.Sub(r.seenAt) >= sumInterval(r.Nodes()), nil
}

// take replaces the Lease that was read or taken, and reports whether it succeeded. If so, lease is the new one. Of
// several daemons that try at once, one succeeds.
func (r *Reporter) take(ctx context.Context, lease *coordinationv1.Lease) (mine bool, err error) {
	now, seconds := metav1.NewMicroTime(time.Now()), int32(sumInterval(r.Nodes())/time.Second)
	taken := lease.DeepCopy()
	taken.Spec.HolderIdentity, taken.Spec.RenewTime, taken.Spec.LeaseDurationSeconds = &r.NodeName, &now, &seconds
	if taken.Name == "" {
		taken.Name = r.Lease
		taken, err = r.Leases.Create(ctx, taken, metav1.CreateOptions{})
	} else {
		taken, err = r.Leases.Update(ctx, taken, metav1.UpdateOptions{})
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return false, nil // another was faster
	case err != nil:
		return false, fmt.Errorf("write the Lease %s: %w", r.Lease, err)
	}
	*lease = *taken
	r.seen, r.seenAt = fmt.Sprint(lease.Spec.RenewTime), now.Time
	return true, nil
}
