package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

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
	// Configs gives the configs of this instance.
	Configs func() []crd.Known
	// Policies gives the StartPolicies of this instance.
	Policies func() []crd.KnownPolicy
	// Log takes what goes wrong, once.
	Log logrus.FieldLogger
}

// Summary writes the status of the PacemakerConfigs and of the StartPolicies. Only one
// daemon of a cluster and instance may run it at a time.
type Summary struct {
	SummaryOptions
	watched, wrote said
	heard          heard
	known          map[types.UID]v1alpha1.PacemakerConfigStatus // as written, or read before the first
	knownPolicies  map[types.UID]v1alpha1.StartPolicyStatus     // the same
}

// NewSummary gives a summary; Run does its work.
func NewSummary(o SummaryOptions) *Summary {
	return &Summary{
		SummaryOptions: o,
		known:          map[types.UID]v1alpha1.PacemakerConfigStatus{}, knownPolicies: map[types.UID]v1alpha1.StartPolicyStatus{},
	}
}

// Run sums up until ctx ends. It is to be called once.
func (s *Summary) Run(ctx context.Context) {
	informer, err := s.informer()
	if err != nil {
		s.Log.WithError(err).Error("the status of PacemakerConfigs is not written")
		return
	}
	// The cluster may be large: the caller's end is the informer's, too.
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	defer func() {
		cancel() // where the rest panics
		<-done
	}()
	go func() {
		defer close(done)
		informer.RunWithContext(ctx)
	}()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return
	}
	// Where all daemons have just begun, the nodes are about to tell.
	timer := time.NewTimer(spread(leastWrite))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		now := time.Now()
		nodes := s.nodes(now, informer.GetStore())
		s.sumAll(ctx, now, nodes)
		timer.Reset(interval(leastSum, len(nodes)))
	}
}

// informer watches all PacemakerNodes, and keeps of each no more than what is summed.
func (s *Summary) informer() (cache.SharedIndexInformer, error) {
	api := s.API.Resource(v1alpha1.NodeResource)
	lw := cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return api.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := api.Watch(ctx, o)
			if err == nil { // a list can succeed where the watch after it does not
				if _, over := s.watched.news(nil); over {
					s.Log.Info("watching the PacemakerNodes again")
				}
			}
			return w, err
		},
	}
	informer := cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(informer.Endable(&lw), s.API), nil, 0, cache.Indexers{})
	if err := informer.SetTransform(trim); err != nil {
		return nil, err
	}
	return informer, informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
		switch {
		case ctx.Err() != nil, errors.Is(err, context.Canceled), apierrors.IsResourceExpired(err), apierrors.IsGone(err):
			return // it ends, or lists anew
		}
		if fault, _ := s.watched.news(err); fault {
			s.Log.WithError(err).Warn("cannot watch the PacemakerNodes: the status of PacemakerConfigs may be out of date; trying again")
		}
	})
}

// sumAll writes every status that has changed.
func (s *Summary) sumAll(ctx context.Context, now time.Time, nodes []v1alpha1.PacemakerNodeStatus) {
	var faults []error
	note := func(name string, err error) {
		if err != nil && !apierrors.IsNotFound(err) {
			faults = append(faults, fmt.Errorf("%s: %w", name, err))
		}
	}
	there := map[types.UID]bool{}
	for _, config := range s.Configs() {
		there[config.UID] = true
		note(config.Name, sumOne(ctx, s.API.Resource(v1alpha1.Resource), config.Name, config.UID, s.known,
			func(before v1alpha1.PacemakerConfigStatus) v1alpha1.PacemakerConfigStatus {
				return sum(now, config, nodes, before)
			}))
	}
	for _, policy := range s.Policies() {
		there[policy.UID] = true
		note(policy.Name, sumOne(ctx, s.API.Resource(v1alpha1.PolicyResource), policy.Name, policy.UID, s.knownPolicies,
			func(before v1alpha1.StartPolicyStatus) v1alpha1.StartPolicyStatus {
				return sumPolicy(now, policy, nodes, before)
			}))
	}
	forget(s.known, there)
	forget(s.knownPolicies, there)
	if ctx.Err() != nil {
		return
	}
	switch fault, over := s.wrote.news(errors.Join(faults...)); {
	case fault:
		s.Log.WithError(errors.Join(faults...)).Warn("cannot write the status of a PacemakerConfig or StartPolicy; trying again")
	case over:
		s.Log.Info("the status of every PacemakerConfig and StartPolicy is written again")
	}
}

// forget drops what is known of objects that are there no more.
func forget[S any](known map[types.UID]S, there map[types.UID]bool) {
	maps.DeleteFunc(known, func(uid types.UID, _ S) bool { return !there[uid] })
}

// sumOne writes the status of an object if it has changed. known are those written, or
// read, before.
func sumOne[S any](ctx context.Context, api dynamic.ResourceInterface, name string, uid types.UID, known map[types.UID]S, sum func(before S) S) error {
	before, isKnown := known[uid]
	if !isKnown {
		u, err := api.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		before = statusOf[S](u) // that an earlier daemon wrote
	}
	status := sum(before)
	if equality.Semantic.DeepEqual(before, status) {
		known[uid] = before
		return nil
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": uid},
		{"op": "add", "path": "/status", "value": status},
	})
	if err != nil {
		return err
	}
	if _, err = api.Patch(ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{}, "status"); err == nil {
		known[uid] = status
	}
	return err
}
