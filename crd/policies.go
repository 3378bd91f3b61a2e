package crd

import (
	"context"
	"reflect"
	"slices"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// Policies finds the StartPolicies that are in force for one daemon: those in the API server for
// its instance that select its node. If there are none, those of its file are in force. Make one with
// [Source.Policies] before the Source runs.
//
// If a policy becomes invalid, its last valid version stays in force. A policy that was never valid
// holds no pod. While the API server is unavailable, or does not serve StartPolicies, everything
// stays as it is.
type Policies struct {
	objects  *follower[v1alpha1.StartPolicy]
	fallback []*v1alpha1.StartPolicy
	onChange func([]*v1alpha1.StartPolicy)
	// Only the goroutine of Run uses these.
	began   bool // onChange was called
	inForce []*v1alpha1.StartPolicy
}

var policyKind = kind[v1alpha1.StartPolicy]{
	name: v1alpha1.PolicyKind, plural: "StartPolicies", logged: "policy", resource: v1alpha1.PolicyResource, validate: ValidatePolicy,
	about: func(p *v1alpha1.StartPolicy) about {
		return about{&p.ObjectMeta, p.Spec.Instance, p.Spec.NodeSelector}
	},
}

// Policies returns Policies for the node and with the OnPanic of the source. onChange is called like
// the OnChange of the source, and must not change what it is called with.
func (s *Source) Policies(fallback []*v1alpha1.StartPolicy, onChange func([]*v1alpha1.StartPolicy)) *Policies {
	p := &Policies{fallback: fallback, onChange: onChange}
	p.objects = newFollower(policyKind, s.options, s.node, p.put)
	return p
}

// Remember reads the file at path, as [Source.Remember] does. A policy in it that is not valid is logged and ignored.
func (p *Policies) Remember(path string) { p.objects.remember(path) }

// Ready returns a channel that is closed once the policies are known and onChange has returned for
// them: they were read from the disk, or the API server has answered. That there are none, or that the
// API server does not serve them, counts as known.
func (p *Policies) Ready() <-chan struct{} { return p.objects.ready }

// KnownPolicy is a StartPolicy in the API server.
type KnownPolicy = Known[v1alpha1.StartPolicy]

// Known returns the StartPolicies in the API server for this daemon's instance, sorted by name, also
// those that do not select its node. It does not block, and is safe for concurrent use.
func (p *Policies) Known() []KnownPolicy { return p.objects.ofInstance() }

// Run watches the API server until ctx ends. Call it once.
func (p *Policies) Run(ctx context.Context) {
	p.objects.begin()
	p.objects.run(ctx, p.objects.setReady)
}

// put puts these policies in force, or else those of the file, and calls onChange at first and if that changes anything.
func (p *Policies) put(policies []*v1alpha1.StartPolicy, origin Origin) {
	if len(policies) == 0 {
		policies = p.fallback
	}
	if p.began && samePolicies(p.inForce, policies) {
		return
	}
	p.began, p.inForce = true, policies
	if origin == OriginAPI {
		p.objects.Log.WithField("policies", p.objects.names(policies)).Info("StartPolicies are in force")
	}
	p.onChange(policies)
}

// samePolicies reports whether a and b have the same versions of the same policies.
func samePolicies(a, b []*v1alpha1.StartPolicy) bool {
	return slices.EqualFunc(a, b, func(a, b *v1alpha1.StartPolicy) bool {
		return a.Name == b.Name && a.UID == b.UID && a.Generation == b.Generation && reflect.DeepEqual(a.Spec, b.Spec)
	})
}
