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

const (
	// leaseName is the name of the Lease, without the suffix for an instance.
	leaseName = "pod-pacemaker-summary"
	// nodesAnnotation of the Lease has the number of nodes whose daemons report.
	nodesAnnotation = "pod-pacemaker.io/nodes"
)

func (s *Summary) leaseName() string {
	if s.Instance == "" {
		return leaseName
	}
	return leaseName + "-" + s.Instance
}

// read returns the Lease, and whether the next sum is due because the Lease has not changed for the interval. If there is
// no Lease yet, it returns one without a name. The interval counts from when this daemon saw the change, so
// clocks of different nodes are not compared.
func (s *Summary) read(ctx context.Context) (lease *coordinationv1.Lease, due bool, err error) {
	lease, err = s.Leases.Get(ctx, s.leaseName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return &coordinationv1.Lease{}, true, nil
	case err != nil:
		return nil, false, fmt.Errorf("read the Lease %s: %w", s.leaseName(), err)
	}
	if n, err := strconv.Atoi(lease.Annotations[nodesAnnotation]); err == nil {
		s.setNodes(n)
	}
	now := time.Now()
	if seen := fmt.Sprint(lease.Spec.RenewTime); seen != s.seen {
		s.seen, s.seenAt = seen, now
	}
	return lease, now.Sub(s.seenAt) >= sumInterval(s.Nodes()), nil
}

// take replaces the Lease that was read, and reports whether it succeeded. Of several daemons that try at once, one
// succeeds.
func (s *Summary) take(ctx context.Context, lease *coordinationv1.Lease) (mine bool, err error) {
	now, seconds := metav1.NewMicroTime(time.Now()), int32(sumInterval(s.Nodes())/time.Second)
	lease = lease.DeepCopy()
	lease.Spec.HolderIdentity, lease.Spec.RenewTime, lease.Spec.LeaseDurationSeconds = &s.NodeName, &now, &seconds
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, nodesAnnotation, strconv.Itoa(s.Nodes()))
	if lease.Name == "" {
		lease.Name = s.leaseName()
		lease, err = s.Leases.Create(ctx, lease, metav1.CreateOptions{})
	} else {
		lease, err = s.Leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return false, nil // another was faster
	case err != nil:
		return false, fmt.Errorf("write the Lease %s: %w", s.leaseName(), err)
	}
	s.seen, s.seenAt = fmt.Sprint(lease.Spec.RenewTime), now.Time
	return true, nil
}
