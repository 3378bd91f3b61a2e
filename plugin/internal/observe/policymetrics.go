package observe

import (
	"maps"
	"slices"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// Values of the label resource that are not resources. No pod can request a resource of such a name.
const (
	podsAsResource  = "pods"
	pacerAsResource = "pacer"
)

// newPolicyMetrics returns metrics of what policies use, with all their groups together: everybody on the node may read the
// metrics, and the name of a group may be the name of a pod.
func newPolicyMetrics(states func() []policies.State, groups func(now time.Time) []throttle.GroupView) *scrape {
	m := &scrape{subsystem: "policy"}
	used := m.gauge("used", "Use of a limit of a StartPolicy by all its groups together: pods, cores, bytes, or the unit of the resource. limit is starting or running.", "policy", "limit", "resource")
	most := m.gauge("used_most", "Use of a limit of a StartPolicy by the group that uses most of it, in the units of policy_used.", "policy", "limit", "resource")
	limit := m.gauge("limit", "The limit of a StartPolicy for each group, with the overrides now in force, in the units of policy_used; with the scope Cluster, for all nodes together.", "policy", "limit", "resource")
	throttled := m.gauge("throttled", "Groups that have reached the limit, so that it holds every pod that needs more. resource is pods, pacer, or a resource.", "policy", "limit", "resource")
	waiting := m.gauge("waiting", "Pods of the policy's groups that wait, for any reason.", "policy")
	ready := m.gauge("ready", "Pods of the policy's groups that are ready.", "policy")
	groupCount := m.gauge("groups", "Groups that have pods.", "policy")
	fault := m.gauge("fault", "1 while the policy holds no pod: it cannot be evaluated, or, with the scope Cluster, pod_pacemaker_claim_open is 1, too.", "policy")
	bound := func(put sample, policy, kind string, b throttle.Bound, groups []policyGroup, use func(policyGroup) throttle.Usage) {
		report := func(resource string, limited bool, threshold float64, field string, amount func(throttle.Usage) float64) {
			var all, largest float64
			for _, g := range groups {
				one := amount(use(g))
				all, largest = all+one, max(largest, one)
			}
			put(used, all, policy, kind, resource)
			put(most, largest, policy, kind, resource)
			if limited {
				put(limit, threshold, policy, kind, resource)
				put(throttled, reachedBy(groups, kind+field), policy, kind, resource)
			}
		}
		pods := int64(0)
		if b.Pods != nil {
			pods = *b.Pods
		}
		// Pods are always reported, resources only if they have a limit.
		report(podsAsResource, b.Pods != nil, float64(pods), ".pods", func(u throttle.Usage) float64 { return float64(u.Pods) })
		for _, resource := range resourcesOf(b) {
			report(resource, true, float64(b.Requests[resource])/1000, ".requests."+resource, func(u throttle.Usage) float64 {
				return float64(u.Requests[resource]) / 1000
			})
		}
	}
	m.collect = func(put sample) {
		views, states := groups(time.Now()), states()
		for _, s := range states[:min(len(states), mostPolicies)] {
			policy := s.Object.Name
			groups := groupsOf(views, policy)
			put(fault, oneIf(s.Fault != ""), policy)
			put(groupCount, float64(len(groups)), policy)
			limits := policies.LimitsOf(s.Calculated.Limits)
			bound(put, policy, "starting", limits.Starting, groups, func(g policyGroup) throttle.Usage { return g.Starting })
			bound(put, policy, "running", limits.Running, groups, func(g policyGroup) throttle.Usage { return g.Running })
			if limits.Pacer.MaxStagger > 0 {
				put(throttled, reachedBy(groups, "pacer"), policy, "starting", pacerAsResource)
			}
			waits, readies := 0, 0
			for _, g := range groups {
				waits, readies = waits+g.Waiting, readies+g.Ready
			}
			put(waiting, float64(waits), policy)
			put(ready, float64(readies), policy)
		}
	}
	return m
}

// reachedBy returns how many groups have reached a limit.
func reachedBy(groups []policyGroup, limit string) (n float64) {
	for _, g := range groups {
		n += oneIf(g.reached[limit])
	}
	return n
}

// resourcesOf returns the resources that have a limit, sorted.
func resourcesOf(b throttle.Bound) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(b.Requests)), func(name string) bool {
		return name == podsAsResource || name == pacerAsResource
	})
}
