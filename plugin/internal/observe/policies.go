package observe

import (
	"cmp"
	"maps"
	"slices"

	"github.com/pod-pacemaker/pod-pacemaker/crd/plain"
	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/policies"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// Limits of what is reported of policies. Users may make any number of groups and resources.
const (
	mostPolicies    = v1alpha1.MostNodePolicies
	mostGroups      = 32  // of a policy
	mostGroupsOfAll = 64  // of all policies, in the PacemakerNode
	mostResources   = 32  // of a group
	mostReached     = 64  // limits of a group
	mostFault       = 512 // bytes
)

// policyGroup is a group and the limits that it has reached: no pod that needs more of them is admitted.
type policyGroup struct {
	throttle.GroupView
	reached map[string]bool // by the fields of the policy
}

// groupsOf returns the groups of a policy, the groups with the most pods first.
func groupsOf(all []throttle.GroupView, policy string) []policyGroup {
	var of []policyGroup
	for _, v := range all {
		if v.Key.Policy == policy {
			of = append(of, policyGroup{v, reachedIn(v)})
		}
	}
	slices.SortStableFunc(of, func(a, b policyGroup) int {
		return cmp.Compare(b.Running.Pods+int64(b.Waiting), a.Running.Pods+int64(a.Waiting))
	})
	return of
}

// reachedIn returns the limits that a group has reached.
func reachedIn(v throttle.GroupView) map[string]bool {
	reached := map[string]bool{}
	check := func(field string, b throttle.Bound, used throttle.Usage) {
		if b.Pods != nil && used.Pods >= *b.Pods {
			reached[field+".pods"] = true
		}
		for resource, most := range b.Requests {
			if used.Requests[resource] >= max(0, most) {
				reached[field+".requests."+resource] = true
			}
		}
	}
	check("starting", v.Limits.Starting, v.Starting)
	check("running", v.Limits.Running, v.Running)
	// While no pod waits, this node claims no slot, and others may be free.
	if c := v.Limits.Claims; c != nil && v.Claims >= 0 && v.Starting.Pods >= int64(v.Claims) && (v.Waiting > 0 || v.Starting.Pods >= int64(c.Slots)) {
		reached["starting.pods"] = true
	}
	if most, limited := v.Limits.Pacer.Allows(v.Ready); limited && v.Running.Pods-int64(v.Ready) >= int64(most) {
		reached["pacer"] = true
	}
	return reached
}

// NodePolicies returns the policies as the status of the PacemakerNode reports them: the first 64, with 64 groups in
// all at most. views are the groups of all policies.
func NodePolicies(states []policies.State, views []throttle.GroupView) (all []v1alpha1.NodePolicy) {
	room := mostGroupsOfAll
	for _, p := range AdminPolicies(states[:min(len(states), mostPolicies)], views) {
		groups := p.Groups[:min(len(p.Groups), room)]
		room -= len(groups)
		all = append(all, v1alpha1.NodePolicy{
			Name: p.Name, Generation: p.Generation, Fault: plain.Line(p.Fault, mostFault), GroupCount: int32(p.GroupCount), Groups: groups,
		})
	}
	return all
}

// AdminPolicies returns the policies as the command `status` reports them, with at most 32 groups of each. views are
// the groups of all policies.
func AdminPolicies(states []policies.State, views []throttle.GroupView) (all []admin.Policy) {
	for _, s := range states {
		groups := groupsOf(views, s.Object.Name)
		p := admin.Policy{
			Name: s.Object.Name, Generation: s.Object.Generation, Scope: s.Object.Spec.GetScope(),
			Limits: s.Calculated.Limits, Fault: s.Fault,
			GroupCount: len(groups), Groups: []v1alpha1.PolicyGroup{},
		}
		for _, v := range groups[:min(len(groups), mostGroups)] {
			reached := slices.Sorted(maps.Keys(v.reached))
			p.Groups = append(p.Groups, v1alpha1.PolicyGroup{
				Group: v.Key.Group, Waiting: int32(v.Waiting), Throttled: reached[:min(len(reached), mostReached)],
				Used: v1alpha1.PolicyUse{Starting: podUse(v.Starting), Running: podUse(v.Running), Ready: int32(v.Ready)},
			})
		}
		all = append(all, p)
	}
	return all
}

func podUse(u throttle.Usage) v1alpha1.PodUse {
	use := v1alpha1.PodUse{Pods: int32(u.Pods)}
	for _, name := range slices.Sorted(maps.Keys(u.Requests)) {
		if len(use.Requests) == mostResources {
			break
		}
		if u.Requests[name] == 0 {
			continue
		}
		if use.Requests == nil {
			use.Requests = map[string]v1alpha1.UsedQuantity{}
		}
		use.Requests[name] = v1alpha1.UsedQuantity(startpolicy.Amount(name, u.Requests[name]))
	}
	return use
}
