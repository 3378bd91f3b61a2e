package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/informer"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// SummaryOptions say what a [Summary] sums up. All are needed. The functions are called
// by Run alone, and must not block.
type SummaryOptions struct {
	// API is the way to the API server.
	API dynamic.Interface
	// Instance is the daemon's, and can be empty: what daemons with other names
	// tell is theirs to sum up.
	Instance string
	// Policies returns the StartPolicies of this instance.
	Policies func() []crd.KnownPolicy
	// SetNodes is called with the number of nodes on which daemons report.
	SetNodes func(int)
	// Log takes what goes wrong, once.
	Log logrus.FieldLogger
}

// Summary writes the status of the StartPolicies. Only one daemon of a cluster and
// instance may run it at a time.
type Summary struct {
	SummaryOptions
	wrote said
	known map[types.UID]v1alpha1.StartPolicyStatus // as written, or read before the first

	mu    sync.Mutex
	heard map[string]lastWord // by the name of the PacemakerNode
}

// lastWord is what a node told last, and when this daemon heard of it, by its own clock.
type lastWord struct {
	status v1alpha1.PacemakerNodeStatus
	at     time.Time
}

// NewSummary returns a summary; Run does its work.
func NewSummary(o SummaryOptions) *Summary {
	return &Summary{SummaryOptions: o, known: map[types.UID]v1alpha1.StartPolicyStatus{}, heard: map[string]lastWord{}}
}

// Run sums up until ctx ends. It is to be called once.
func (s *Summary) Run(ctx context.Context) {
	watch := s.watch()
	stop := begin(ctx, watch.Run)
	defer stop() // also where the rest panics
	select {
	case <-ctx.Done():
		return
	case <-watch.Synced():
	}
	// Where all daemons have just begun, the nodes are about to tell.
	for pause := spread(leastWrite); await(ctx, pause); {
		now := time.Now()
		nodes := s.nodes(now)
		s.SetNodes(len(nodes))
		s.sumAll(ctx, now, nodes)
		pause = interval(leastSum, len(nodes))
	}
}

// watch prepares the watch of all PacemakerNodes, which keeps of each no more than what is summed.
func (s *Summary) watch() *informer.Informer[*v1alpha1.PacemakerNode] {
	return informer.New(s.API.Resource(v1alpha1.NodeResource), informer.Options[*v1alpha1.PacemakerNode]{
		What: "PacemakerNodes", Meanwhile: "the status of StartPolicies may be out of date",
		Client: s.API, Kind: &unstructured.Unstructured{}, Keep: trim, Log: s.Log,
		Changed: func(before, after *v1alpha1.PacemakerNode) {
			if after == nil {
				s.forget(before.Name)
				return
			}
			s.hear(after)
		},
	})
}

// hear takes over what a node tells. A status that was never written does not count.
func (s *Summary) hear(n *v1alpha1.PacemakerNode) {
	if n.Status.Instance != s.Instance || n.Status.Written == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard[n.Name] = lastWord{n.Status, time.Now()}
}

func (s *Summary) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.heard, name)
}

// nodes returns what the nodes of this instance tell, in the order of their names. A daemon that
// was stopped says so; one that this daemon has not heard of for long was removed without
// having been able to. That is counted from when this daemon was elected at the earliest: the
// clocks of nodes may differ.
func (s *Summary) nodes(now time.Time) (there []v1alpha1.PacemakerNodeStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.heard)) {
		if last := s.heard[name]; now.Sub(last.at) <= goneAfter {
			there = append(there, last.status)
		}
	}
	return there
}

// sumAll writes every status that has changed.
func (s *Summary) sumAll(ctx context.Context, now time.Time, nodes []v1alpha1.PacemakerNodeStatus) {
	var faults []error
	there := map[types.UID]bool{}
	for _, policy := range s.Policies() {
		there[policy.UID] = true
		if err := s.sumOne(ctx, now, policy, nodes); err != nil && !apierrors.IsNotFound(err) {
			faults = append(faults, fmt.Errorf("%s: %w", policy.Name, err))
		}
	}
	maps.DeleteFunc(s.known, func(uid types.UID, _ v1alpha1.StartPolicyStatus) bool { return !there[uid] })
	if ctx.Err() != nil {
		return
	}
	switch fault, over := s.wrote.news(errors.Join(faults...)); {
	case fault:
		s.Log.WithError(errors.Join(faults...)).Warn("cannot write the status of a StartPolicy; trying again")
	case over:
		s.Log.Info("the status of every StartPolicy is written again")
	}
}

// sumOne writes the status of a policy if it has changed.
func (s *Summary) sumOne(ctx context.Context, now time.Time, policy crd.KnownPolicy, nodes []v1alpha1.PacemakerNodeStatus) error {
	api := s.API.Resource(v1alpha1.PolicyResource)
	before, isKnown := s.known[policy.UID]
	if !isKnown {
		u, err := api.Get(ctx, policy.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		before = statusOf[v1alpha1.StartPolicyStatus](u) // that an earlier daemon wrote
	}
	status := sumPolicy(now, policy, nodes, before)
	if equality.Semantic.DeepEqual(before, status) {
		s.known[policy.UID] = before
		return nil
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": policy.UID},
		{"op": "add", "path": "/status", "value": status},
	})
	if err != nil {
		return err
	}
	if _, err = api.Patch(ctx, policy.Name, types.JSONPatchType, patch, metav1.PatchOptions{}, "status"); err == nil {
		s.known[policy.UID] = status
	}
	return err
}
