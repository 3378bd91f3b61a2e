package policies

import (
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/leases"
)

// unclaimed is why a policy of the scope Cluster holds no pod where no slot can be claimed.
const unclaimed = "the starts of the whole cluster are not counted: that needs an API server, and the policy as an object there"

// claimableLocked reports whether starts can be claimed for a policy of the scope Cluster: an
// object of the API server has to own the Leases. m.mu must be held.
func (m *Matcher) claimableLocked(name string) bool {
	one := m.objectLocked(name)
	return m.options.Claims != nil && one != nil && one.UID != ""
}

// objectLocked returns the policy in force of that name. m.mu must be held.
func (m *Matcher) objectLocked(name string) *v1alpha1.StartPolicy {
	for _, one := range m.inForce {
		if one.Name == name {
			return one
		}
	}
	return nil
}

// claimOf says what is to be claimed for a policy with these limits of now.
func claimOf(one *v1alpha1.StartPolicy, limits v1alpha1.PolicyLimits) leases.Policy {
	p := leases.Policy{UID: one.UID, OpenAfter: one.Spec.GetOpenAfter()}
	if s := limits.Starting; s != nil && s.Pods != nil {
		p.Slots = int(*s.Pods)
	}
	return p
}
