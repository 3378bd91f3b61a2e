package report

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
)

const (
	// leaseName is the name of the Lease; an instance's has its name behind it.
	leaseName = "pod-pacemaker-summary"
	// nodesAnnotation of the Lease says on how many nodes daemons report.
	nodesAnnotation = "pod-pacemaker.io/nodes"
)

// How many times the time between two looks a Lease lasts for the others, and its holder
// relies on it after it was last sure of it: it looks again only after a request and a pause
// of that time each. No clock is compared with another: the others count from the moment in
// which they saw the Lease change.
const (
	lasts  = 4
	relies = 2
)

// ElectionOptions say by which Lease one daemon is elected. All are needed.
type ElectionOptions struct {
	// API is the way to the API server.
	API kube.Interface
	// Namespace is where the Lease is.
	Namespace string
	// NodeName tells the candidates apart: there is one on each node. Instance can
	// be empty; the daemons of each instance elect one of their own.
	NodeName, Instance string
	// Log takes which daemon is elected.
	Log logrus.FieldLogger
}

// Election elects one daemon of a cluster for a task, and lets all of them know how large the
// cluster is. It goes by the rules of client-go's leaderelection, which would bring the
// clients of all kinds of Kubernetes with it.
type Election struct {
	ElectionOptions
	said  said
	nodes atomic.Int64

	// Only Run touches these.
	seen   string    // what was last seen to change with each renewal
	seenAt time.Time // when
}

// NewElection returns an election; Run takes part in it.
func NewElection(o ElectionOptions) *Election { return &Election{ElectionOptions: o} }

// Nodes returns on how many nodes daemons report, as the elected one told last: from 0, which
// is that it is not known, to 50,000. It does not block, and is safe for concurrent use.
func (e *Election) Nodes() int { return int(e.nodes.Load()) }

// SetNodes is for the elected daemon: on how many nodes daemons report. It does not block,
// and is safe for concurrent use.
func (e *Election) SetNodes(n int) { e.nodes.Store(int64(min(max(n, 0), mostNodes))) }

// Run stands for election until ctx ends, and calls work whenever this daemon is
// elected, never twice at a time. work has to return soon after its context has ended.
// A daemon that is started again after a crash is elected still. Run must not run twice
// at a time.
func (e *Election) Run(ctx context.Context, work func(context.Context)) {
	stop := func() {}
	defer func() { stop() }()
	elected, sure := false, time.Time{}
	for {
		every, asked := retry(e.Nodes()), time.Now()
		holds, err := e.try(ctx, every)
		e.logOutcome(err)
		switch {
		case holds:
			sure = asked
			if !elected {
				e.Log.WithField("lease", e.leaseName()).Info("this daemon was elected to write the status of the StartPolicies")
				elected, stop = true, begin(ctx, work)
			}
		case elected && (err == nil || time.Since(sure) >= relies*every):
			stop()
			elected, stop = false, func() {}
		}
		if !elected {
			every = wait.Jitter(every, 1.2)
		}
		if !await(ctx, every) {
			break
		}
	}
	if elected {
		stop()
		e.release(ctx)
	}
}

// begin runs work until what it gives is called, which returns when work has.
func begin(ctx context.Context, work func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		work(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

// try makes or renews the Lease in the name of this daemon, or takes it over from one
// that is gone. It tells whether this daemon holds it now.
func (e *Election) try(ctx context.Context, every time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, every)
	defer cancel()
	api := e.API.Leases(e.Namespace)
	lease, err := api.Get(ctx, e.leaseName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: e.leaseName()}}
		e.sign(lease, every)
		_, err = api.Create(ctx, lease, metav1.CreateOptions{})
	case err != nil:
	case e.another(lease):
		if n, err := strconv.Atoi(lease.Annotations[nodesAnnotation]); err == nil {
			e.SetNodes(n)
		}
		return false, nil
	default:
		lease = lease.DeepCopy()
		e.sign(lease, every)
		_, err = api.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return false, nil // another was faster
	}
	return err == nil, err
}

// another reports whether another daemon holds the Lease.
func (e *Election) another(lease *coordinationv1.Lease) bool {
	holder, now := holderOf(lease), time.Now()
	if seen := fmt.Sprint(holder, lease.Spec.RenewTime); seen != e.seen {
		e.seen, e.seenAt = seen, now
	}
	longest := lasts * mostRetry
	if s := lease.Spec.LeaseDurationSeconds; s != nil {
		longest = min(longest, time.Duration(*s)*time.Second)
	}
	return holder != "" && holder != e.NodeName && now.Before(e.seenAt.Add(longest))
}

func holderOf(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// sign makes this daemon the holder.
func (e *Election) sign(lease *coordinationv1.Lease, every time.Duration) {
	now, seconds, changes := metav1.NewMicroTime(time.Now()), int32(lasts*every/time.Second), int32(0)
	if holderOf(lease) != e.NodeName {
		if lease.Spec.LeaseTransitions != nil {
			changes = *lease.Spec.LeaseTransitions + 1
		}
		lease.Spec.AcquireTime, lease.Spec.LeaseTransitions = &now, &changes
	}
	lease.Spec.HolderIdentity, lease.Spec.RenewTime, lease.Spec.LeaseDurationSeconds = &e.NodeName, &now, &seconds
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, nodesAnnotation, strconv.Itoa(e.Nodes()))
}

// release returns the Lease back. It asks for no longer than a moment: a daemon that is
// told to stop must not wait for an API server that is away.
func (e *Election) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	lease, err := e.API.Leases(e.Namespace).Get(ctx, e.leaseName(), metav1.GetOptions{})
	if err != nil || holderOf(lease) != e.NodeName {
		return
	}
	lease = lease.DeepCopy()
	lease.Spec.HolderIdentity = nil
	_, err = e.API.Leases(e.Namespace).Update(ctx, lease, metav1.UpdateOptions{})
	if !apierrors.IsConflict(err) {
		e.logOutcome(err)
	}
}

// logOutcome logs once that the Lease cannot be used, and once that it can be again.
func (e *Election) logOutcome(err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	switch fault, over := e.said.news(err); {
	case fault:
		e.Log.WithError(err).Warnf("the Lease %s/%s cannot be used: this daemon cannot be elected to write the status of the StartPolicies; trying again", e.Namespace, e.leaseName())
	case over:
		e.Log.Infof("the Lease %s/%s can be used again", e.Namespace, e.leaseName())
	}
}

func (e *Election) leaseName() string {
	if e.Instance == "" {
		return leaseName
	}
	return leaseName + "-" + e.Instance
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
