package report

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// leaseName is the name of the Lease; an instance's has its name behind it.
const leaseName = "pod-pacemaker-summary"

// ElectionOptions say by which Lease one daemon is elected. All are needed.
type ElectionOptions struct {
	// API is the way to the API server.
	API kubernetes.Interface
	// Namespace is where the Lease is.
	Namespace string
	// NodeName tells the candidates apart: there is one on each node. Instance can
	// be empty; the daemons of each instance elect one of their own.
	NodeName, Instance string
	// Nodes gives the size of the cluster, 0 while it is not known. It must be safe for
	// concurrent use, and not block.
	Nodes func() int
	// Log takes who is elected.
	Log logrus.FieldLogger
}

// Election has one daemon of a cluster do something.
type Election struct {
	ElectionOptions
	said said
}

// NewElection gives an election; Run takes part in it.
func NewElection(o ElectionOptions) *Election { return &Election{ElectionOptions: o} }

// Run stands for election until ctx ends, and calls work whenever this daemon is
// elected, never twice at a time. work has to return soon after its context has ended.
// A daemon that is started again after a crash is elected still. Run must not run twice
// at a time.
func (e *Election) Run(ctx context.Context, work func(context.Context)) {
	for ctx.Err() == nil {
		e.stand(ctx, retry(e.Nodes()), work)
		// It was not elected any more, or the cluster has another size now.
		timer := time.NewTimer(spread(leastRetry))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// stand takes part until ctx ends, the lease is lost, or the size of the cluster
// asks for another time between two looks.
func (e *Election) stand(ctx context.Context, every time.Duration, work func(context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lock := e.lock(ctx)
	worked := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, Name: e.leaseName(),
		LeaseDuration: 4 * every, RenewDeadline: 3 * every, RetryPeriod: every,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				defer close(worked)
				e.Log.WithField("lease", e.leaseName()).Info("this daemon was elected to write the status of the PacemakerConfigs")
				work(ctx)
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		e.Log.WithError(err).Error("no daemon can be elected to write the status of the PacemakerConfigs")
		return
	}
	sized := make(chan struct{})
	go func() {
		defer close(sized)
		e.followSize(ctx, every, cancel)
	}()
	// client-go would log every try; what is wrong is said here, once.
	elector.Run(klog.NewContext(ctx, klog.Logger{}))
	if lock.won.Load() {
		<-worked
	}
	cancel()
	<-sized
}

// followSize ends an election that looks too often, or too seldom.
func (e *Election) followSize(ctx context.Context, every time.Duration, end func()) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if now := retry(e.Nodes()); now >= 2*every || 2*now <= every {
				end()
			}
		}
	}
}

// candidacy is the lease of one time that this daemon stands.
type candidacy struct {
	resourcelock.Interface
	ctx  context.Context // ends with it
	tell func(error)
	won  atomic.Bool
}

func (e *Election) lock(ctx context.Context) *candidacy {
	return &candidacy{ctx: ctx, tell: e.tell, Interface: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: e.Namespace, Name: e.leaseName()},
		Client:     e.API.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: e.NodeName},
	}}
}

// hurried bounds what is asked at the end, when the lease is given back: a daemon
// that is told to stop must not wait for an API server that is away.
func (c *candidacy) hurried(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.ctx.Err() == nil {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, lastWords)
}

// Get implements resourcelock.Interface.
func (c *candidacy) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	ctx, cancel := c.hurried(ctx)
	defer cancel()
	r, raw, err := c.Interface.Get(ctx)
	if !apierrors.IsNotFound(err) { // it is about to be made
		c.tell(err)
	}
	return r, raw, err
}

// Create implements resourcelock.Interface.
func (c *candidacy) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return c.noted(r, c.Interface.Create(ctx, r))
}

// Update implements resourcelock.Interface.
func (c *candidacy) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	ctx, cancel := c.hurried(ctx)
	defer cancel()
	return c.noted(r, c.Interface.Update(ctx, r))
}

func (c *candidacy) noted(r resourcelock.LeaderElectionRecord, err error) error {
	if err == nil && r.HolderIdentity == c.Identity() {
		c.won.Store(true)
	}
	if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) { // another was faster
		c.tell(err)
	}
	return err
}

// tell says how the last question to the API server went, once.
func (e *Election) tell(err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	switch fault, over := e.said.news(err); {
	case fault:
		e.Log.WithError(err).Warnf("the Lease %s/%s cannot be used: this daemon cannot be elected to write the status of the PacemakerConfigs; trying again", e.Namespace, e.leaseName())
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
