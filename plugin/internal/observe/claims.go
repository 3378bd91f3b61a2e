package observe

import (
	"slices"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/leases"
)

// newClaimMetrics returns metrics of the slots of policies with the scope Cluster.
func newClaimMetrics(view func() leases.View) *scrape {
	m := &scrape{subsystem: "claim"}
	held := m.gauge("slots_held", "Slots of the policy that this node holds, of all its groups; each is a Lease.", "policy")
	wanted := m.gauge("slots_wanted", "How many more slots of the policy this node could use at once.", "policy")
	open := m.gauge("open", "1 while the policy holds no pod because the Leases of its slots cannot be used: the API server is away, or the role is missing.", "policy")
	requests := m.counter("requests_total", "Requests for Leases of slots, by what they are for.", "for")
	conflicts := m.counter("conflicts_total", "Requests for Leases of slots that came too late, because another node was faster.")
	failures := m.counter("failures_total", "Requests for Leases of slots that failed.")
	lost := m.counter("slots_lost_total", "Slots that could not be renewed in time, or that were taken away.")
	m.collect = func(put sample) {
		v := view()
		for policy := range v.Held {
			put(held, float64(v.Held[policy]), policy)
			put(wanted, float64(v.Wanted[policy]), policy)
			put(open, oneIf(slices.Contains(v.OpenPolicies, policy)), policy)
		}
		for what, n := range v.Calls {
			put(requests, float64(n), what)
		}
		put(conflicts, float64(v.Conflicts))
		put(failures, float64(v.Failures))
		put(lost, float64(v.Lost))
	}
	return m
}
