package leases

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
)

// callTimeout bounds one request: an answer that comes later is of no use.
const callTimeout = 5 * time.Second

// store makes the calls of a planner.
type store struct {
	api    kube.Leases
	holder string
}

// make makes a call, and waits for its answer.
func (s store) make(ctx context.Context, c call) answer {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	a := answer{call: c}
	switch c.verb {
	case takeSlot, renewSlot:
		a.seen, a.err = s.write(ctx, c)
	case releaseSlot, sweepSlot:
		a.err = s.delete(ctx, c)
	case lookSlot:
		a.seen, a.err = s.read(ctx, c)
	case probeReads:
		// Version 0 is answered without etcd.
		_, a.err = s.api.Get(ctx, c.slot.name, metav1.GetOptions{ResourceVersion: "0"})
	case probeWrites:
		_, a.err = s.api.Create(ctx, newLease(c, s.holder, time.Now()), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	}
	switch {
	case a.err == nil:
		a.gone = c.verb == releaseSlot || c.verb == sweepSlot
	case apierrors.IsNotFound(a.err):
		a.gone = true
		a.err = s.missing(c, a.err)
	case c.verb == probeWrites && apierrors.IsAlreadyExists(a.err):
		a.err = nil
	case apierrors.IsConflict(a.err), apierrors.IsAlreadyExists(a.err):
		a.err = fmt.Errorf("%w: %w", errConflict, a.err)
	}
	if a.err != nil {
		a.err = fmt.Errorf("%s the Lease %s: %w", c.verb, c.slot.name, a.err)
	}
	return a
}

// missing says what it means that there is no Lease.
func (s store) missing(c call, err error) error {
	switch {
	case c.verb == takeSlot && c.slot.version == 0:
		return err // it is the namespace that is missing
	case c.verb == takeSlot, c.verb == renewSlot:
		return fmt.Errorf("%w: %w", errConflict, err)
	default:
		return nil
	}
}

// write makes the Lease, or replaces the one that was seen by one that is held by this
// node.
func (s store) write(ctx context.Context, c call) (*record, error) {
	lease := newLease(c, s.holder, time.Now())
	var err error
	if c.slot.version == 0 {
		lease, err = s.api.Create(ctx, lease, metav1.CreateOptions{})
	} else {
		lease.ResourceVersion, lease.UID = versionText(c.slot.version), c.slot.uid
		lease, err = s.api.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if err != nil {
		return nil, err
	}
	return seenAs(lease)
}

// seenAs gives what was seen of a Lease; nil where it cannot be read.
func seenAs(lease *coordinationv1.Lease) (*record, error) {
	r, err := readRecord(lease)
	if err != nil {
		return nil, err
	}
	return &r, nil
}

// read reads the Lease from the store itself, not from an API server's memory of it.
func (s store) read(ctx context.Context, c call) (*record, error) {
	lease, err := s.api.Get(ctx, c.slot.name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	seen, err := seenAs(lease)
	if errors.Is(err, errNoSlot) {
		err = fmt.Errorf("%w: %w", errConflict, err)
	}
	return seen, err
}

// delete deletes the Lease if it is still the one that was seen.
func (s store) delete(ctx context.Context, c call) error {
	version := versionText(c.slot.version)
	return s.api.Delete(ctx, c.slot.name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &c.slot.uid, ResourceVersion: &version},
	})
}
