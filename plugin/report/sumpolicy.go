package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// The reasons of the conditions.
const (
	reasonInForce      = "InForce"
	reasonInvalid      = "Invalid"
	reasonNoNodes      = "NoNodes"
	reasonNotReported  = "NotReported"
	reasonUpdating     = "Updating"
	reasonNotEvaluated = "NotEvaluated"
)

// Limits of the status of a StartPolicy.
const (
	namesShown    = 5        // in a message
	mostMessage   = 16 << 10 // bytes: the faults of a policy fit
	mostGroups    = 32
	mostThrottled = 64
)

// sumPolicy returns the status of a policy from the reports of the nodes. before is its current status.
func sumPolicy(now time.Time, policy crd.KnownPolicy, nodes []v1alpha1.PacemakerNodeStatus, before v1alpha1.StartPolicyStatus) v1alpha1.StartPolicyStatus {
	status := v1alpha1.StartPolicyStatus{ObservedGeneration: policy.Generation}
	groups := map[string]v1alpha1.PolicyGroup{}
	var late, unable []string
	why, cut := "", false
	for _, n := range nodes {
		i := slices.IndexFunc(n.Policies, func(p v1alpha1.NodePolicy) bool { return p.Name == policy.Name })
		if i < 0 || stopped(n) {
			cut = cut || len(n.Policies) >= v1alpha1.MostNodePolicies
			continue
		}
		reported := n.Policies[i]
		status.Nodes++
		status.GroupCount = max(status.GroupCount, reported.GroupCount)
		if reported.Generation != policy.Generation {
			late = append(late, n.NodeName)
		}
		if reported.Fault != "" {
			unable, why = append(unable, n.NodeName), reported.Fault
		}
		for _, g := range reported.Groups {
			groups[g.Group] = add(groups[g.Group], g)
		}
	}
	sumGroups(&status, groups)
	if policy.Valid != nil {
		limits := startpolicy.Compile(policy.Valid).LimitsAt(now).Limits
		status.CalculatedLimits = limits.DeepCopy()
	}
	c := policyReadiness(policy, status.Nodes, cut, late, unable, why)
	status.Conditions = summed(before.Conditions, now, policy.Generation, c)
	return status
}

// policyReadiness returns the condition Ready. cut reports whether a node may have the policy in force without reporting it.
func policyReadiness(policy crd.KnownPolicy, nodes int32, cut bool, late, unable []string, why string) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse}
	switch {
	case policy.Fault != "":
		c.Reason, c.Message = reasonInvalid, "the newest generation is invalid and ignored: "+policy.Fault
	case nodes == 0 && cut:
		c.Status, c.Reason = metav1.ConditionUnknown, reasonNotReported
		c.Message = fmt.Sprintf("a node reports only the first %d policies by name, of those that are in force on it", v1alpha1.MostNodePolicies)
	case nodes == 0:
		c.Reason, c.Message = reasonNoNodes, "in force on no node"
	case len(late) > 0:
		c.Reason, c.Message = reasonUpdating, fmt.Sprintf("%d of %d nodes have another generation in force: %s", len(late), nodes, some(late))
	case len(unable) > 0:
		c.Reason, c.Message = reasonNotEvaluated, fmt.Sprintf("it holds no pod on %d of %d nodes: %s: %s", len(unable), nodes, some(unable), why)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, reasonInForce, fmt.Sprintf("in force on all %d nodes", nodes)
	}
	return c
}

// sumGroups sets the sums and the largest groups, the largest first.
func sumGroups(status *v1alpha1.StartPolicyStatus, groups map[string]v1alpha1.PolicyGroup) {
	status.GroupCount = max(status.GroupCount, int32(len(groups)))
	var all v1alpha1.PolicyGroup
	for _, g := range groups {
		all = add(all, g)
		status.Groups = append(status.Groups, g)
	}
	status.Waiting, status.Used, status.Throttled = all.Waiting, all.Used, all.Throttled[:min(len(all.Throttled), mostThrottled)]
	slices.SortFunc(status.Groups, func(a, b v1alpha1.PolicyGroup) int {
		return cmp.Or(cmp.Compare(b.Used.Running.Pods+b.Waiting, a.Used.Running.Pods+a.Waiting), cmp.Compare(a.Group, b.Group))
	})
	status.Groups = status.Groups[:min(len(status.Groups), mostGroups)]
}

// add returns the sum of two parts of one group.
func add(a, b v1alpha1.PolicyGroup) v1alpha1.PolicyGroup {
	return v1alpha1.PolicyGroup{
		Group: b.Group, Waiting: a.Waiting + b.Waiting, Throttled: union(a.Throttled, b.Throttled),
		Used: v1alpha1.PolicyUse{
			Starting: addUse(a.Used.Starting, b.Used.Starting), Running: addUse(a.Used.Running, b.Used.Running), Ready: a.Used.Ready + b.Used.Ready,
		},
	}
}

func addUse(a, b v1alpha1.PodUse) v1alpha1.PodUse {
	sum := v1alpha1.PodUse{Pods: a.Pods + b.Pods}
	for _, part := range []v1alpha1.PodUse{a, b} {
		for name, amount := range part.Requests {
			if sum.Requests == nil {
				sum.Requests = map[string]v1alpha1.UsedQuantity{}
			}
			sum.Requests[name] = v1alpha1.UsedQuantity(startpolicy.AddAmounts(name, string(sum.Requests[name]), string(amount)))
		}
	}
	return sum
}

// union returns all names sorted, without duplicates.
func union(names ...[]string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(names...))))
}

// some returns the first names, sorted, and the number of the others.
func some(names []string) string {
	names = union(names)
	if more := len(names) - namesShown; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:namesShown], ", "), more)
	}
	return strings.Join(names, ", ")
}
