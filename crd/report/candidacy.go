package report

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
)

// How many times the time between two looks a Lease lasts for the others, and its
// holder relies on it. No clock is compared with another: the others count from the
// moment in which they saw it change.
const (
	lasts  = 4
	relies = 3
)

// candidacy is one time that this daemon stands for election: by the rules of client-go's
// leaderelection, which would bring the clients of all kinds of Kubernetes with it.
type candidacy struct {
	leases kube.Leases
	name   string
	holder string
	every  time.Duration // between two looks
	tell   func(error)

	seen   string    // what was last seen to change with each renewal
	seenAt time.Time // when
}

// try makes or renews the Lease in the name of this daemon, or takes it over from one
// that is gone. It tells whether this daemon holds it now.
func (c *candidacy) try(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, c.every)
	defer cancel()
	held, err := c.hold(ctx)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return false // another was faster
	}
	c.tell(err)
	return held && err == nil
}

func (c *candidacy) hold(ctx context.Context) (bool, error) {
	lease, err := c.leases.Get(ctx, c.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: c.name}}
		c.sign(lease)
		_, err = c.leases.Create(ctx, lease, metav1.CreateOptions{})
		return true, err
	}
	if err != nil {
		return false, err
	}
	if c.another(lease) {
		return false, nil
	}
	lease = lease.DeepCopy()
	c.sign(lease)
	_, err = c.leases.Update(ctx, lease, metav1.UpdateOptions{})
	return true, err
}

// another tells whether another daemon holds the Lease.
func (c *candidacy) another(lease *coordinationv1.Lease) bool {
	holder, now := holderOf(lease), time.Now()
	if seen := fmt.Sprint(holder, lease.Spec.RenewTime); seen != c.seen {
		c.seen, c.seenAt = seen, now
	}
	longest := lasts * mostRetry
	if s := lease.Spec.LeaseDurationSeconds; s != nil {
		longest = min(longest, time.Duration(*s)*time.Second)
	}
	return holder != "" && holder != c.holder && now.Before(c.seenAt.Add(longest))
}

func holderOf(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// sign makes this daemon the holder.
func (c *candidacy) sign(lease *coordinationv1.Lease) {
	now, seconds, changes := metav1.NewMicroTime(time.Now()), int32(lasts*c.every/time.Second), int32(0)
	if holderOf(lease) != c.holder {
		if lease.Spec.LeaseTransitions != nil {
			changes = *lease.Spec.LeaseTransitions + 1
		}
		lease.Spec.AcquireTime, lease.Spec.LeaseTransitions = &now, &changes
	}
	lease.Spec.HolderIdentity, lease.Spec.RenewTime, lease.Spec.LeaseDurationSeconds = &c.holder, &now, &seconds
}

// lead calls work while this daemon holds the Lease, and gives it back then.
func (c *candidacy) lead(ctx context.Context, work func(context.Context)) {
	working, end := context.WithCancel(ctx)
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		work(working)
	}()
	for held := time.Now(); time.Since(held) < relies*c.every && await(ctx, c.every); {
		sent := time.Now()
		if c.try(ctx) {
			held = sent
		}
	}
	end()
	<-worked
	c.release(ctx)
}

// release gives the Lease back. It asks for no longer than a moment: a daemon that is
// told to stop must not wait for an API server that is away.
func (c *candidacy) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	lease, err := c.leases.Get(ctx, c.name, metav1.GetOptions{})
	if err != nil || holderOf(lease) != c.holder {
		return
	}
	lease = lease.DeepCopy()
	lease.Spec.HolderIdentity = nil
	_, err = c.leases.Update(ctx, lease, metav1.UpdateOptions{})
	if !apierrors.IsConflict(err) {
		c.tell(err)
	}
}

// await waits, and reports false when ctx ended before.
func await(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
