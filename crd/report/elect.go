package report

import (
	"context"
	"errors"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
)

// leaseName is the name of the Lease; an instance's has its name behind it.
const leaseName = "pod-pacemaker-summary"

// ElectionOptions say by which Lease one daemon is elected. All are needed.
type ElectionOptions struct {
	// API is the way to the API server.
	API kube.Interface
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
	sized := make(chan struct{})
	go func() {
		defer close(sized)
		e.followSize(ctx, every, cancel)
	}()
	defer func() {
		cancel()
		<-sized
	}()
	c := &candidacy{leases: e.API.Leases(e.Namespace), name: e.leaseName(), holder: e.NodeName, every: every, tell: e.tell}
	for !c.try(ctx) {
		if !await(ctx, wait.Jitter(every, 1.2)) {
			return
		}
	}
	e.Log.WithField("lease", e.leaseName()).Info("this daemon was elected to write the status of the PacemakerConfigs")
	c.lead(ctx, work)
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
