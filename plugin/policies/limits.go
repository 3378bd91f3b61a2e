package policies

import (
	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/leases"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// LimitsOf returns the limits of a valid policy for the limiter. With the scope Cluster, the claims that the
// node holds bound the starts. It keeps nothing of l.
func LimitsOf(l v1alpha1.PolicyLimits, scope v1alpha1.PolicyScope) throttle.GroupLimits {
	if scope == v1alpha1.ScopeCluster {
		return throttle.GroupLimits{Claims: true}
	}
	return throttle.GroupLimits{Starting: boundOf(l.Starting), Running: boundOf(l.Running), Pacer: pacerOf(l.Pacer)}
}

func boundOf(b *v1alpha1.PodBound) (bound throttle.Bound) {
	if b == nil {
		return bound
	}
	if b.Pods != nil {
		pods := int64(*b.Pods)
		bound.Pods = &pods
	}
	for name, amount := range b.Requests {
		milli, err := amount.Milli()
		if err != nil {
			continue // no policy that is valid has one
		}
		if bound.Requests == nil {
			bound.Requests = throttle.Amounts{}
		}
		bound.Requests[name] = milli
	}
	return bound
}

func pacerOf(p *v1alpha1.Pacer) throttle.Pacer {
	switch {
	case p == nil:
	case p.Exponential != nil:
		e := p.Exponential
		return throttle.Pacer{MinInitial: int(e.MinInitial), Multiplier: e.Multiplier.Or(1), MaxStagger: int(e.MaxStagger)}
	case p.Linear != nil:
		return throttle.Pacer{Step: int(p.Linear.Step), MaxStagger: int(p.Linear.MaxStagger)}
	}
	return throttle.Pacer{}
}

// claimOf returns what has to be claimed for a policy with these limits.
func claimOf(policy *startpolicy.Policy, limits v1alpha1.PolicyLimits) leases.Policy {
	p := leases.Policy{UID: policy.UID, OpenAfter: policy.OpenAfter}
	if s := limits.Starting; s != nil && s.Pods != nil {
		p.Slots = int(*s.Pods)
	}
	return p
}
