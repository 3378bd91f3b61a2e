package policies

import (
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// LimitsOf returns the limits of a valid policy of the scope Node for the limiter. It keeps nothing of l.
func LimitsOf(l v1alpha1.PolicyLimits) throttle.GroupLimits {
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

// claimsOf returns the limits of a policy of the scope Cluster: the slots that this node claims limit the starts.
func claimsOf(policy *v1alpha1.StartPolicy, limits v1alpha1.PolicyLimits) throttle.GroupLimits {
	c := &throttle.Claims{Owner: string(policy.UID), OpenAfter: policy.Spec.GetOpenAfter()}
	if s := limits.Starting; s != nil && s.Pods != nil {
		c.Slots = int(*s.Pods)
	}
	return throttle.GroupLimits{Claims: c}
}
