package report

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

var policyNow = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// tells returns a node's report about one policy.
func tells(name string, p v1alpha1.NodePolicy) v1alpha1.PacemakerNodeStatus {
	at := metav1.NewTime(policyNow)
	return v1alpha1.PacemakerNodeStatus{NodeName: name, LastReportTime: &at, Policies: []v1alpha1.NodePolicy{p}}
}

func knownPolicy(t *testing.T, spec string) crd.KnownPolicy {
	t.Helper()
	p := &v1alpha1.StartPolicy{ObjectMeta: metav1.ObjectMeta{Name: "t1"}}
	require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &p.Spec))
	return crd.KnownPolicy{ObjectMeta: metav1.ObjectMeta{Name: "t1", UID: "u", Generation: 3}, Valid: p}
}

const t1 = `
selector: {terms: [{podSelector: {}}]}
limits: {running: {requests: {cpu: 200m}}}
temporaryOverrides:
  - {begin: "2026-11-27T00:00:00Z", end: "2026-11-28T00:00:00Z", limits: {running: {requests: {cpu: "5"}}}}
`

func group(name string, pods, waiting int32, cpu string, throttled ...string) v1alpha1.PolicyGroup {
	return v1alpha1.PolicyGroup{
		Group: name, Waiting: waiting, Throttled: throttled,
		Used: v1alpha1.PolicyUse{Running: v1alpha1.PodUse{Pods: pods, Requests: map[string]v1alpha1.UsedQuantity{"cpu": v1alpha1.UsedQuantity(cpu)}}},
	}
}

// sumPolicy returns the status of a policy from the reports of the nodes.
func sumPolicy(now time.Time, policy crd.KnownPolicy, nodes []v1alpha1.PacemakerNodeStatus, before v1alpha1.StartPolicyStatus) v1alpha1.StartPolicyStatus {
	s, room := newPolicySum(policy), mostGroupsSummed
	for _, n := range nodes {
		s.add(n, &room)
	}
	return s.status(now, before)
}

func TestThePolicySumsUpTheReportsOfNodes(t *testing.T) {
	t.Parallel()
	status := sumPolicy(policyNow, knownPolicy(t, t1), []v1alpha1.PacemakerNodeStatus{
		tells("a", v1alpha1.NodePolicy{Name: "t1", Generation: 3, GroupCount: 2, Groups: []v1alpha1.PolicyGroup{
			group("x", 1, 1, "200m", "running.requests.cpu"), group("y", 3, 0, "1"),
		}}),
		tells("b", v1alpha1.NodePolicy{Name: "t1", Generation: 3, GroupCount: 1, Groups: []v1alpha1.PolicyGroup{group("x", 1, 2, "300m")}}),
		tells("c", v1alpha1.NodePolicy{Name: "other"}),
	}, v1alpha1.StartPolicyStatus{})
	assert.Equal(t, []int64{3, 2, 3, 2}, []int64{status.ObservedGeneration, int64(status.Nodes), int64(status.Waiting), int64(status.GroupCount)})
	assert.Equal(t, v1alpha1.PodUse{Pods: 5, Requests: map[string]v1alpha1.UsedQuantity{"cpu": "1500m"}}, status.Used.Running)
	assert.Equal(t, []string{"running.requests.cpu"}, status.Throttled)
	require.Len(t, status.Groups, 2)
	assert.Equal(t, "x", status.Groups[0].Group)
	assert.EqualValues(t, "500m", status.Groups[0].Used.Running.Requests["cpu"])

	assert.EqualValues(t, "5", status.CalculatedLimits.Running.Requests["cpu"])
	assert.True(t, meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady))

	again := sumPolicy(policyNow.Add(time.Minute), knownPolicy(t, t1), nil, status)
	assert.Equal(t, "NoNodes", meta.FindStatusCondition(again.Conditions, v1alpha1.ConditionReady).Reason)
}

func TestThePolicyStatusSaysWhyItIsNotInForce(t *testing.T) {
	t.Parallel()
	valid := knownPolicy(t, "{selector: {terms: [{podSelector: {}}]}, limits: {running: {pods: 1}}}")
	invalid := crd.KnownPolicy{ObjectMeta: metav1.ObjectMeta{Name: "t1", Generation: 3}, Fault: "spec.groupBy: no"}
	for want, status := range map[string]v1alpha1.StartPolicyStatus{
		"Invalid":      sumPolicy(policyNow, invalid, nil, v1alpha1.StartPolicyStatus{}),
		"Updating":     sumPolicy(policyNow, valid, []v1alpha1.PacemakerNodeStatus{tells("a", v1alpha1.NodePolicy{Name: "t1", Generation: 2})}, v1alpha1.StartPolicyStatus{}),
		"NotEvaluated": sumPolicy(policyNow, valid, []v1alpha1.PacemakerNodeStatus{tells("a", v1alpha1.NodePolicy{Name: "t1", Generation: 3, Fault: "blind"})}, v1alpha1.StartPolicyStatus{}),
	} {
		c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
		assert.Equal(t, want, c.Reason)
		assert.Equal(t, metav1.ConditionFalse, c.Status)
		assert.NotEmpty(t, c.Message)
	}
}

func TestOnlyTheLargestGroupsAreReported(t *testing.T) {
	t.Parallel()
	p := v1alpha1.NodePolicy{Name: "t1", Generation: 3, GroupCount: 5000}
	for i := range 40 {
		p.Groups = append(p.Groups, group(fmt.Sprintf("g%02d", i), int32(i), 0, "1m"))
	}
	status := sumPolicy(policyNow, knownPolicy(t, t1), []v1alpha1.PacemakerNodeStatus{tells("a", p)}, v1alpha1.StartPolicyStatus{})
	require.Len(t, status.Groups, mostGroups)
	assert.Equal(t, "g39", status.Groups[0].Group)
	assert.EqualValues(t, 5000, status.GroupCount)
	assert.EqualValues(t, 780, status.Used.Running.Pods, "the sum includes all groups")
}

// Users may make any number of groups. The sums have all of them, also those for which there was no room.
func TestGroupsWithoutRoomAreInTheSums(t *testing.T) {
	t.Parallel()
	s, room := newPolicySum(knownPolicy(t, t1)), 2
	for i := range 3 {
		s.add(tells(fmt.Sprint("n", i), v1alpha1.NodePolicy{Name: "t1", Generation: 3, GroupCount: 2, Groups: []v1alpha1.PolicyGroup{
			group("all", 1, 0, "1m"), group(fmt.Sprint("g", i), 10, 1, "1m", fmt.Sprint("limit-", i)),
		}}), &room)
	}
	status := s.status(policyNow, v1alpha1.StartPolicyStatus{})
	assert.Zero(t, room)
	assert.Equal(t, v1alpha1.PodUse{Pods: 33, Requests: map[string]v1alpha1.UsedQuantity{"cpu": "6m"}}, status.Used.Running)
	assert.EqualValues(t, 3, status.Waiting)
	assert.Equal(t, []string{"limit-0", "limit-1", "limit-2"}, status.Throttled)
	require.Len(t, status.Groups, 2)
	assert.Equal(t, "g0", status.Groups[0].Group)
	assert.EqualValues(t, 3, status.Groups[1].Used.Running.Pods, "a group that is shown has the pods of all nodes")
}

// What the status has no room for must not make the API server refuse all of it: overrides may add resources, and nodes may
// report different ones.
func TestTheStatusHasNoMoreThanTheAPIServerTakes(t *testing.T) {
	t.Parallel()
	spec := "{selector: {terms: [{podSelector: {}}]}, limits: {running: {requests: {cpu: 1}}}, temporaryOverrides: ["
	for i := range 2 {
		spec += "{limits: {running: {requests: {"
		for n := range 8 {
			spec += fmt.Sprintf("x.io/r%d-%d: 1, ", i, n)
		}
		spec += "}}}}, "
	}
	policy := knownPolicy(t, spec+"]}")
	reports := make([]v1alpha1.PacemakerNodeStatus, 3)
	for i := range reports {
		g := group("g", 1, 0, "1")
		for n := range 25 {
			g.Used.Running.Requests[fmt.Sprintf("x.io/r%d-%02d", i, n)] = "1"
			g.Throttled = append(g.Throttled, fmt.Sprintf("running.requests.x.io/r%d-%02d", i, n))
		}
		reports[i] = tells(fmt.Sprint("n", i), v1alpha1.NodePolicy{Name: "t1", Generation: 3, Groups: []v1alpha1.PolicyGroup{g}})
	}
	status := sumPolicy(policyNow, policy, reports, v1alpha1.StartPolicyStatus{})
	assert.Nil(t, status.CalculatedLimits, "17 resources are limited")
	for _, g := range []v1alpha1.PolicyGroup{status.Groups[0], {Used: status.Used, Throttled: status.Throttled}} {
		assert.Len(t, g.Throttled, 64)
		assert.Len(t, g.Used.Running.Requests, 32)
		assert.Contains(t, g.Used.Running.Requests, "x.io/r1-05")
		assert.EqualValues(t, 3, g.Used.Running.Pods)
	}
}

// A message names some nodes, and says how many others there are.
func TestAMessageNamesTheFirstNodes(t *testing.T) {
	t.Parallel()
	var n names
	assert.Empty(t, n.String())
	for _, name := range []string{"g", "b", "a", "f", "c"} {
		n.add(name)
	}
	assert.Equal(t, "a, b, c, f, g", n.String())
	n.add("d")
	n.add("z")
	assert.Equal(t, "a, b, c, d, f and 2 more", n.String())
}

// No sum of the nodes' reports overflows, and what is not an amount counts as 0.
func TestASumDoesNotOverflow(t *testing.T) {
	t.Parallel()
	use := func(amount string) v1alpha1.PodUse {
		return v1alpha1.PodUse{Requests: map[string]v1alpha1.UsedQuantity{"memory": v1alpha1.UsedQuantity(amount)}}
	}
	for amount, twice := range map[string]string{
		"4Pi": "8Pi", "9Pi": "18Pi", "9223372036854775807m": "18446744073709551614m", "many": "0",
	} {
		sum := addUse(use(amount), use(amount))
		assert.EqualValues(t, twice, sum.Requests["memory"], amount)
		assert.EqualValues(t, twice, addUse(sum, use("0")).Requests["memory"], "an earlier sum can be summed up again")
	}
	assert.EqualValues(t, "1Gi", addUse(use("1Gi"), use("many")).Requests["memory"])
	for _, pair := range [][2]string{{"500000000", "1953125Ki"}, {"1953125Ki", "500000000"}} {
		assert.EqualValues(t, "2500000000", addUse(use(pair[0]), use(pair[1])).Requests["memory"], "the order does not matter")
	}
	assert.EqualValues(t, "500000000", addUse(v1alpha1.PodUse{}, use("500000000")).Requests["memory"], "a sum of one is as the node wrote it")
	var all v1alpha1.PodUse
	for range mostNodes {
		all = addUse(all, use("9223372036854775807m")) // the most that a node reports
	}
	assert.EqualValues(t, "461168601842738790350", all.Requests["memory"], "it has at most the 32 characters that the API server accepts")
}

func TestAPolicyThatNoNodeHasRoomToReportIsNotSaidToBeInForceNowhere(t *testing.T) {
	t.Parallel()
	node := v1alpha1.PacemakerNodeStatus{NodeName: "a"}
	readiness := func() *metav1.Condition {
		status := sumPolicy(policyNow, knownPolicy(t, t1), []v1alpha1.PacemakerNodeStatus{node}, v1alpha1.StartPolicyStatus{})
		return meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	}
	for i := range v1alpha1.MostNodePolicies {
		ready := readiness()
		require.Equal(t, metav1.ConditionFalse, ready.Status, i)
		require.Equal(t, "NoNodes", ready.Reason)
		node.Policies = append(node.Policies, v1alpha1.NodePolicy{Name: fmt.Sprint(i)})
	}
	require.Equal(t, metav1.ConditionUnknown, readiness().Status)
	require.Equal(t, "NotReported", readiness().Reason)
	node.Policies[0].Name = "t1"
	node.Policies[0].Generation = 3
	require.Equal(t, metav1.ConditionTrue, readiness().Status)
}
