package policies

import (
	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/leases"
)

// unclaimed is why a policy of the scope Cluster holds no pod where no slot can be claimed.
const unclaimed = "the starts of the whole cluster are not counted: that needs an API server, and the policy as an object there"

// claimable reports whether starts can be claimed for a policy of the scope Cluster: an
// object of the API server has to own the Leases.
func (m *Matcher) claimable(policy *startpolicy.Policy) bool {
	return m.options.Claims != nil && policy.UID != ""
}

// claimOf says what is to be claimed for a policy with these limits of now.
func claimOf(policy *startpolicy.Policy, limits v1alpha1.PolicyLimits) leases.Policy {
	p := leases.Policy{UID: policy.UID, OpenAfter: policy.OpenAfter}
	if s := limits.Starting; s != nil && s.Pods != nil {
		p.Slots = int(*s.Pods)
	}
	return p
}
