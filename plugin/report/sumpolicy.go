package report

import (
	"cmp"
	"fmt"
	"maps"
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
	mostRequests  = 32
	mostLimited   = 16 // resources of a bound in calculatedLimits
)

// policySum is what the reports of the nodes say of one policy. It keeps no report.
type policySum struct {
	policy            crd.KnownPolicy
	nodes, groupCount int32
	groups            map[string]v1alpha1.PolicyGroup
	rest              v1alpha1.PolicyGroup // the sum of the groups for which there is no room in groups
	late, unable      names                // the nodes that have another generation in force, and those that cannot evaluate the policy
	why               string               // a node cannot evaluate it
	cut               bool                 // a node may have the policy in force without reporting it
}

func newPolicySum(policy crd.KnownPolicy) *policySum {
	return &policySum{policy: policy, groups: map[string]v1alpha1.PolicyGroup{}}
}

// add adds the report of a node. room is the number of groups that may still be kept.
func (s *policySum) add(n v1alpha1.PacemakerNodeStatus, room *int) {
	i := slices.IndexFunc(n.Policies, func(p v1alpha1.NodePolicy) bool { return p.Name == s.policy.Name })
	if i < 0 || stopped(n) {
		s.cut = s.cut || len(n.Policies) >= v1alpha1.MostNodePolicies
		return
	}
	reported := n.Policies[i]
	s.nodes++
	s.groupCount = max(s.groupCount, reported.GroupCount)
	if reported.Generation != s.policy.Generation {
		s.late.add(n.NodeName)
	}
	if reported.Fault != "" {
		s.unable.add(n.NodeName)
		s.why = reported.Fault
	}
	for _, g := range reported.Groups {
		known, has := s.groups[g.Group]
		if !has && *room <= 0 {
			s.rest = add(s.rest, g)
			continue
		}
		if !has {
			*room--
		}
		s.groups[g.Group] = add(known, g)
	}
}

// status returns the status of the policy. before is its current status.
func (s *policySum) status(now time.Time, before v1alpha1.StartPolicyStatus) v1alpha1.StartPolicyStatus {
	status := v1alpha1.StartPolicyStatus{ObservedGeneration: s.policy.Generation, Nodes: s.nodes}
	s.sumGroups(&status)
	if s.policy.Valid != nil {
		limits := startpolicy.Compile(s.policy.Valid).LimitsAt(now).Limits
		if max(limited(limits.Starting), limited(limits.Running)) <= mostLimited { // overrides may add some
			status.CalculatedLimits = limits.DeepCopy()
		}
	}
	status.Conditions = summed(before.Conditions, now, s.policy.Generation, s.readiness())
	return status
}

// limited returns the number of resources that a bound limits.
func limited(b *v1alpha1.PodBound) int {
	if b == nil {
		return 0
	}
	return len(b.Requests)
}

// readiness returns the condition Ready.
func (s *policySum) readiness() metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse}
	switch {
	case s.policy.Fault != "":
		c.Reason, c.Message = reasonInvalid, "the newest generation is invalid and ignored: "+s.policy.Fault
	case s.nodes == 0 && s.cut:
		c.Status, c.Reason = metav1.ConditionUnknown, reasonNotReported
		c.Message = fmt.Sprintf("a node reports only the first %d policies by name, of those that are in force on it", v1alpha1.MostNodePolicies)
	case s.nodes == 0:
		c.Reason, c.Message = reasonNoNodes, "in force on no node"
	case s.late.count > 0:
		c.Reason, c.Message = reasonUpdating, fmt.Sprintf("%d of %d nodes have another generation in force: %s", s.late.count, s.nodes, s.late)
	case s.unable.count > 0:
		c.Reason, c.Message = reasonNotEvaluated, fmt.Sprintf("it holds no pod on %d of %d nodes: %s: %s", s.unable.count, s.nodes, s.unable, s.why)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, reasonInForce, fmt.Sprintf("in force on all nodes: %d", s.nodes)
	}
	return c
}

// sumGroups sets the sums and the largest groups, the largest first.
func (s *policySum) sumGroups(status *v1alpha1.StartPolicyStatus) {
	status.GroupCount = max(s.groupCount, int32(len(s.groups)))
	all := s.rest
	for _, g := range s.groups {
		all = add(all, g)
		status.Groups = append(status.Groups, cut(g))
	}
	all = cut(all)
	status.Waiting, status.Used, status.Throttled = all.Waiting, all.Used, all.Throttled
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

// cut leaves out of a sum what there is no room for in the status: the last limits and resources by the alphabet.
func cut(g v1alpha1.PolicyGroup) v1alpha1.PolicyGroup {
	g.Throttled = g.Throttled[:min(len(g.Throttled), mostThrottled)]
	for _, requests := range []map[string]v1alpha1.UsedQuantity{g.Used.Starting.Requests, g.Used.Running.Requests} {
		names := slices.Sorted(maps.Keys(requests))
		for _, name := range names[min(len(names), mostRequests):] {
			delete(requests, name)
		}
	}
	return g
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

// union returns the elements of both, sorted and without duplicates.
func union(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

// names counts names, and keeps the first ones by the alphabet for a message. Each must be added once only.
type names struct {
	count int
	first []string
}

func (n *names) add(name string) {
	n.count++
	at, _ := slices.BinarySearch(n.first, name)
	n.first = slices.Insert(n.first, at, name)
	n.first = n.first[:min(len(n.first), namesShown)]
}

// String returns the first names, and the number of the others.
func (n names) String() string {
	shown := strings.Join(n.first, ", ")
	if more := n.count - len(n.first); more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	return shown
}
