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

// newPolicyMetrics returns metrics of what the groups of policies use. The number of series is limited: of each policy,
// only the groups with the most pods have series.
func newPolicyMetrics(states func() []policies.State, groups func(now time.Time) []throttle.GroupView) *scrape {
	m := &scrape{subsystem: "policy"}
	used := m.gauge("used", "Use of a limit of a StartPolicy: pods, cores, bytes, or the unit of the resource. limit is starting or running.", "policy", "group", "limit", "resource")
	limit := m.gauge("limit", "The limit of a StartPolicy for each group, with the overrides now in force, in the same units; with the scope Cluster, for all nodes together.", "policy", "limit", "resource")
	throttled := m.gauge("throttled", "1 while the limit is reached, so that it holds every pod that needs more. resource is pods, pacer, or a resource.", "policy", "group", "limit", "resource")
	waiting := m.gauge("waiting", "Pods of the group that wait, for any reason.", "policy", "group")
	ready := m.gauge("ready", "Pods of the group that are ready.", "policy", "group")
	groupCount := m.gauge("groups", "Groups that have pods. Only the 32 groups with the most pods have series.", "policy")
	fault := m.gauge("fault", "1 while the policy holds no pod: it cannot be evaluated, or, with the scope Cluster, pod_pacemaker_claim_open is 1, too.", "policy")
	bound := func(put sample, policy, kind string, b throttle.Bound, groups []policyGroup, use func(policyGroup) throttle.Usage) {
		if b.Pods != nil {
			put(limit, float64(*b.Pods), policy, kind, podsAsResource)
		}
		for _, g := range groups { // pods are always reported, resources only if they have a limit
			put(used, float64(use(g).Pods), policy, g.Key.Group, kind, podsAsResource)
			if b.Pods != nil {
				put(throttled, oneIf(g.reached[kind+".pods"]), policy, g.Key.Group, kind, podsAsResource)
			}
		}
		for _, resource := range resourcesOf(b) {
			put(limit, float64(b.Requests[resource])/1000, policy, kind, resource)
			for _, g := range groups {
				put(used, float64(use(g).Requests[resource])/1000, policy, g.Key.Group, kind, resource)
				put(throttled, oneIf(g.reached[kind+".requests."+resource]), policy, g.Key.Group, kind, resource)
			}
		}
	}
	m.collect = func(put sample) {
		views, states := groups(time.Now()), states()
		for _, s := range states[:min(len(states), mostPolicies)] {
			policy := s.Object.Name
			groups := groupsOf(views, policy)
			put(fault, oneIf(s.Fault != ""), policy)
			put(groupCount, float64(len(groups)), policy)
			groups = groups[:min(len(groups), mostGroups)]
			limits := policies.LimitsOf(s.Calculated.Limits)
			bound(put, policy, "starting", limits.Starting, groups, func(g policyGroup) throttle.Usage { return g.Starting })
			bound(put, policy, "running", limits.Running, groups, func(g policyGroup) throttle.Usage { return g.Running })
			for _, g := range groups {
				put(waiting, float64(g.Waiting), policy, g.Key.Group)
				put(ready, float64(g.Ready), policy, g.Key.Group)
				if limits.Pacer.MaxStagger > 0 {
					put(throttled, oneIf(g.reached["pacer"]), policy, g.Key.Group, "starting", pacerAsResource)
				}
			}
		}
	}
	return m
}

// resourcesOf returns the resources that have a limit, sorted.
func resourcesOf(b throttle.Bound) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(b.Requests)), func(name string) bool {
		return name == podsAsResource || name == pacerAsResource
	})
}
