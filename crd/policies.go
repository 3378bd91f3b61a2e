package crd

import (
	"context"
	"reflect"
	"slices"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// Policies knows which StartPolicies are in force for one daemon: those of the API
// server for its instance that select its node. Where there are none, those of its
// file are in force. Make one with [Source.Policies], before the Source runs.
//
// Of a policy that becomes invalid, the last good version stays in force; one that was never
// valid holds no pod. While the API server is away, or does not know StartPolicies, everything
// stays as it is.
type Policies struct {
	objects  *follower[v1alpha1.StartPolicy]
	log      logrus.FieldLogger
	fallback []*v1alpha1.StartPolicy
	onChange func([]*v1alpha1.StartPolicy)
	inForce  []*v1alpha1.StartPolicy // of Run alone, once that runs
}

var policyKind = kind[v1alpha1.StartPolicy]{
	name: v1alpha1.PolicyKind, plural: "StartPolicies", logged: "policy", resource: v1alpha1.PolicyResource, validate: ValidatePolicy,
	about: func(p *v1alpha1.StartPolicy) about {
		return about{&p.ObjectMeta, p.Spec.Instance, p.Spec.NodeSelector, &p.Spec}
	},
}

// Policies makes Policies that follow the labels of the source's node, and count their panics
// where the source does. onChange is called as OnChange of the source. What it is given must not be changed.
func (s *Source) Policies(fallback []*v1alpha1.StartPolicy, onChange func([]*v1alpha1.StartPolicy)) *Policies {
	p := &Policies{log: s.options.Log, fallback: fallback, onChange: onChange, inForce: fallback}
	p.objects = newFollower(policyKind, s.options, s.node, p.put)
	return p
}

// Remember puts in force the policies that the file at path holds, until the API server
// answers, and has what that says kept there. A file that is damaged, or of another
// node, is logged and left out, and so is a policy in it that is not valid. It is to
// be called before Run, once.
func (p *Policies) Remember(path string) {
	if found, ok := p.objects.remember(path); ok {
		p.set(found)
	}
}

// Told is closed once onChange has returned from what policies there are known to be, maybe none:
// they were remembered, or the API server has answered, be it that it does not serve them.
func (p *Policies) Told() <-chan struct{} { return p.objects.told }

// KnownPolicy is a StartPolicy of the API server, valid or not.
type KnownPolicy struct {
	Name string
	UID  types.UID
	// Generation is that of the newest version.
	Generation int64
	// Fault is what is wrong with that; empty: nothing.
	Fault string
	// Policy is the last good version, nil if none was. It must not be changed.
	Policy *v1alpha1.StartPolicy
}

// Known returns the StartPolicies of the API server that are for this daemon's
// instance, by name, also those that do not select its node. It does not block, and
// is safe for concurrent use.
func (p *Policies) Known() (all []KnownPolicy) {
	p.objects.each(func(name string, v version[v1alpha1.StartPolicy]) {
		all = append(all, KnownPolicy{Name: name, UID: v.uid, Generation: v.generation, Fault: v.fault, Policy: v.good})
	})
	return all
}

// Run watches the API server until ctx ends. It is to be called once.
func (p *Policies) Run(ctx context.Context) {
	p.objects.begin(func() { p.onChange(p.inForce) })
	p.objects.run(ctx, p.objects.setTold)
}

// put puts these policies in force, and tells so if that is new.
func (p *Policies) put(policies []*v1alpha1.StartPolicy, origin Origin) {
	before, next := p.set(policies)
	if samePolicies(before, next) {
		return
	}
	if origin == OriginAPI {
		p.log.WithField("policies", p.objects.names(next)).Info("StartPolicies are in force")
	}
	p.onChange(next)
}

// set puts these policies in force, and gives what was before and what is now.
func (p *Policies) set(policies []*v1alpha1.StartPolicy) (before, next []*v1alpha1.StartPolicy) {
	if len(policies) == 0 {
		policies = p.fallback
	}
	before, p.inForce = p.inForce, policies
	return before, policies
}

// samePolicies reports whether the same is in force by both.
func samePolicies(a, b []*v1alpha1.StartPolicy) bool {
	return slices.EqualFunc(a, b, func(a, b *v1alpha1.StartPolicy) bool {
		return a.Name == b.Name && a.UID == b.UID && a.Generation == b.Generation && reflect.DeepEqual(a.Spec, b.Spec)
	})
}
