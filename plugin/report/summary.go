package report

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// SummaryOptions are the options of a [Summary]. All are needed. Only Run calls Policies, and it must not block.
type SummaryOptions struct {
	// API is a client for the custom resources. Leases is one for the Leases of the daemon's namespace.
	API    dynamic.Interface
	Leases kube.Leases
	// NodeName is the node's name. Instance is the daemon's name, and may be empty. Only the reports of daemons with
	// the same Instance are summed up.
	NodeName, Instance string
	// Policies returns the StartPolicies of this instance.
	Policies func() []crd.KnownPolicy
	// Log gets each error once.
	Log logrus.FieldLogger
}

// Summary writes the status of the StartPolicies, and counts the nodes of the cluster. Every daemon of the cluster runs
// one. They take turns by means of a Lease.
type Summary struct {
	SummaryOptions
	nodes atomic.Int64

	// Only Run touches these.
	faults faultLog
	begun  bool      // this daemon has had a turn
	seen   string    // the renew time in the Lease
	seenAt time.Time // when this daemon first saw it
}

// NewSummary returns a Summary. Run does its work.
func NewSummary(o SummaryOptions) *Summary { return &Summary{SummaryOptions: o} }

// Nodes returns the number of nodes whose daemons report, according to the last sum, and at most 50,000. It is 0 if
// unknown. It does not block, and is safe for concurrent use.
func (s *Summary) Nodes() int { return int(s.nodes.Load()) }

func (s *Summary) setNodes(n int) { s.nodes.Store(int64(min(max(n, 0), mostNodes))) }

// Run sums up when it is this daemon's turn, until ctx ends. It blocks. Call it once. It logs each error once and tries
// again.
func (s *Summary) Run(ctx context.Context) {
	// All daemons of a cluster may have started at the same moment.
	for next := rand.N(leastSum / 10); ; next = wait.Jitter(sumInterval(s.Nodes()), 0.5) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
		if mine, err := s.turn(ctx); (mine || err != nil) && ctx.Err() == nil {
			s.faults.log(s.Log, err, "cannot sum up the PacemakerNodes, so the status of StartPolicies may be out of date; trying again",
				"the status of every StartPolicy is written again")
		}
	}
}

// turn sums up if that is due and no other daemon does it. mine reports whether this daemon did.
func (s *Summary) turn(ctx context.Context) (mine bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, turnTimeout)
	defer cancel()
	lease, due, err := s.read(ctx)
	if err != nil || !due {
		return false, err
	}
	nodes, err := s.reports(ctx)
	if err != nil {
		return false, err
	}
	s.setNodes(len(nodes))
	if mine, err = s.take(ctx, lease); !mine || err != nil {
		return false, err
	}
	if !s.begun {
		s.begun = true
		s.Log.WithField("lease", s.leaseName()).Info("this daemon takes turns to sum up the PacemakerNodes")
	}
	var faults []error
	for _, policy := range s.Policies() {
		if err := s.sum(ctx, policy, nodes); err != nil && !apierrors.IsNotFound(err) {
			faults = append(faults, fmt.Errorf("write the status of StartPolicy %s: %w", policy.Name, err))
		}
	}
	return true, errors.Join(faults...)
}

// reports returns the status of the PacemakerNodes of this instance, in the order of their names, each with the time at
// which it was written by the API server's clock. It leaves out those that were written more than goneAfter before the
// newest: their daemons are gone and could not report that they were stopped.
func (s *Summary) reports(ctx context.Context) (there []v1alpha1.PacemakerNodeStatus, err error) {
	var newest metav1.Time
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return s.API.Resource(v1alpha1.NodeResource).List(ctx, o)
	}
	err = pager.New(list).EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		u, _ := object.(*unstructured.Unstructured) // the list holds nothing else
		status := statusOf[v1alpha1.PacemakerNodeStatus](u)
		if status.Instance != s.Instance || status.Written == nil {
			return nil
		}
		status.Message, status.Version, status.Signal = "", "", "" // not needed here
		status.Written = writtenAt(u)
		if newest.Before(status.Written) {
			newest = *status.Written
		}
		there = append(there, status)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the PacemakerNodes: %w", err)
	}
	return slices.DeleteFunc(there, func(n v1alpha1.PacemakerNodeStatus) bool { return newest.Sub(n.Written.Time) > goneAfter }), nil
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

// statusOf returns the status of an object. It returns the zero value if there is no valid status, which the caller then
// replaces.
func statusOf[T any](u *unstructured.Unstructured) (status T) {
	object, _, err := unstructured.NestedMap(u.Object, "status")
	if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(object, &status) != nil {
		var none T
		return none
	}
	return status
}

// sum writes the status of a policy if it has changed.
func (s *Summary) sum(ctx context.Context, policy crd.KnownPolicy, nodes []v1alpha1.PacemakerNodeStatus) error {
	api := s.API.Resource(v1alpha1.PolicyResource)
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
