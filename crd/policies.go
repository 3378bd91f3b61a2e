package crd

import (
	"reflect"

	"github.com/pod-pacemaker/pod-pacemaker/crd/rules"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

var policyKind = kind[v1alpha1.StartPolicy]{
	name: v1alpha1.PolicyKind, plural: "StartPolicies", logged: "policy", resource: v1alpha1.PolicyResource, check: rules.Policy,
	about: func(p *v1alpha1.StartPolicy) about {
		return about{&p.ObjectMeta, p.Spec.Instance, p.Spec.NodeSelector}
	},
}

// KnownPolicy is a StartPolicy in the API server.
type KnownPolicy = Known[v1alpha1.StartPolicy]

// KnownPolicies returns the StartPolicies in the API server for this daemon's instance, sorted by name, also
// those that do not select its node. It does not block, and is safe for concurrent use.
func (s *Source) KnownPolicies() []KnownPolicy { return s.policies.ofInstance() }

// PoliciesReady returns a channel that is closed once the policies are known and OnPolicies has returned for
// them: they were read from the disk, or the API server has answered. That there are none, or that the
// API server has refused to send them for some seconds, counts as known.
func (s *Source) PoliciesReady() <-chan struct{} { return s.policies.ready }

// putPolicies puts these policies in force, or else the policies of the file, and calls OnPolicies at first and if that
// changes anything.
func (s *Source) putPolicies(policies []*v1alpha1.StartPolicy, origin Origin) {
	if len(policies) == 0 {
		policies = s.options.FilePolicies
	}
	if s.began && reflect.DeepEqual(s.inForce, policies) {
		return
	}
	s.began, s.inForce = true, policies
	if origin == OriginAPI {
		names := s.policies.names(policies)
		s.options.Log.WithField("policies", names).Info("StartPolicies in force: " + names)
	}
	s.options.OnPolicies(policies)
}
