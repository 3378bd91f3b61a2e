package policies

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clienttest "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube/kubetest"
	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// noon is the time at which the tests begin.
var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// told is a Limiter that records its calls.
type told struct {
	limits   map[string]throttle.GroupLimits
	groups   map[string][]throttle.Membership
	running  map[string]bool // ready
	finished []string
	calls    int
}

func newTold() *told {
	return &told{groups: map[string][]throttle.Membership{}, running: map[string]bool{}}
}

// newMatcher returns a Matcher without a policy, and its limiter.
func newMatcher() (*told, *Matcher) {
	l := newTold()
	return l, New(l, true)
}

// compiled compiles policies without a log.
func compiled(inForce ...*v1alpha1.StartPolicy) []State {
	log, _ := logtest.NewNullLogger()
	return Compile(inForce, log)
}

func (l *told) SetPolicies(now time.Time, limits map[string]throttle.GroupLimits, pods ...throttle.PodGroups) {
	l.limits = limits
	for _, pod := range pods {
		l.SetGroups(now, pod)
	}
}

func (l *told) SetGroups(_ time.Time, pod throttle.PodGroups) {
	l.calls++
	l.groups[pod.UID] = pod.Groups
	if pod.Running {
		l.running[pod.UID] = pod.Ready
	}
}

func (l *told) Finished(_ time.Time, uid string) { l.finished = append(l.finished, uid) }

func policy(t *testing.T, name, spec string) *v1alpha1.StartPolicy {
	t.Helper()
	p := &v1alpha1.StartPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &p.Spec))
	return p
}

const throttler = `{selector: {terms: [{podSelector: {matchLabels: {throttle: t1}}}]}, limits: {running: {requests: {cpu: 200m}}}}`

func pod(uid string, labels map[string]string, milliCPU int64) Pod {
	return Pod{UID: uid, Namespace: "shop", Facts: startpolicy.Facts{Labels: labels, Requests: map[string]int64{"cpu": milliCPU}}}
}

func keys(groups []throttle.Membership) (all []throttle.GroupKey) {
	for _, g := range groups {
		all = append(all, g.Key)
	}
	return all
}

func TestPodsAreInTheGroupsOfThePoliciesInForce(t *testing.T) {
	t.Parallel()
	l, k := newMatcher()
	t1 := map[string]string{"throttle": "t1"}
	require.Empty(t, k.Groups(noon, pod("a", t1, 200)))

	k.SetPolicies(noon, compiled(policy(t, "t1", throttler)))
	require.Equal(t, throttle.Amounts{"cpu": 200}, l.limits["t1"].Running.Requests)
	require.Equal(t, []throttle.Membership{{Key: throttle.GroupKey{Policy: "t1"}, Requests: throttle.Amounts{"cpu": 200}}}, l.groups["a"])
	require.Equal(t, []throttle.GroupKey{{Policy: "t1"}}, keys(k.Groups(noon, pod("b", t1, 300))))
	require.Empty(t, k.Groups(noon, pod("c", nil, 300)))

	calls := l.calls
	k.Runs(noon, pod("a", t1, 200), false)
	k.Runs(noon, pod("a", t1, 200), false)
	k.Runs(noon, pod("a", t1, 200), true)
	require.Equal(t, calls+2, l.calls, "the limiter gets only the news")
	require.True(t, l.running["a"])

	k.Groups(noon, pod("c", t1, 300))
	require.Equal(t, []throttle.GroupKey{{Policy: "t1"}}, keys(l.groups["c"]), "its labels have changed")

	k.SetPolicies(noon, compiled(policy(t, "t2", throttler), policy(t, "t1", throttler)))
	require.Equal(t, []throttle.GroupKey{{Policy: "t2"}, {Policy: "t1"}}, keys(l.groups["a"]))
	require.True(t, l.running["a"], "the pod still runs")
	k.SetPolicies(noon, nil)
	require.Empty(t, l.limits)
	require.Empty(t, l.groups["a"])

	k.Finished(noon, "a")
	k.Forget(noon, "b")
	require.Equal(t, []string{"a", "b"}, l.finished)
	require.NotContains(t, k.pods, "b")
}

func TestOverridesBeginAndEndByThemselves(t *testing.T) {
	t.Parallel()
	l, k := newMatcher()
	k.SetPolicies(noon, compiled(policy(t, "t1", `
selector: {terms: [{podSelector: {}}]}
limits: {running: {pods: 1}}
temporaryOverrides: [{begin: "2026-11-27T13:00:00Z", end: "2026-11-27T14:00:00Z", limits: {running: {pods: 5}}}]`)))
	pods := func() int64 { return *l.limits["t1"].Running.Pods }
	next, _ := k.Advance(noon)
	require.True(t, next.Equal(noon.Add(time.Hour)))
	require.EqualValues(t, 1, pods())
	next, changes := k.Advance(next)
	require.Equal(t, []string{"t1"}, changes.Overridden)
	require.EqualValues(t, 5, pods())
	require.EqualValues(t, 5, *k.State()[0].Calculated.Limits.Running.Pods)
	k.Advance(noon.Add(2 * time.Hour))
	require.EqualValues(t, 5, pods(), "at its end, the override is still in force")
	require.True(t, next.After(noon.Add(2*time.Hour)))
	next, changes = k.Advance(next)
	require.Zero(t, next)
	require.Equal(t, []string{"t1"}, changes.Overridden)
	require.EqualValues(t, 1, pods())
}

// The clock of a node may be set. Only the present time counts, not the way to it.
func TestOverridesFollowAClockThatIsSet(t *testing.T) {
	t.Parallel()
	l, k := newMatcher()
	k.SetPolicies(noon, compiled(
		policy(t, "t1", `
selector: {terms: [{podSelector: {}}]}
limits: {running: {pods: 1}}
temporaryOverrides: [{begin: "2026-11-27T13:00:00Z", end: "2026-11-27T14:00:00Z", limits: {running: {pods: 5}}}]`),
		policy(t, "t2", `
selector: {terms: [{podSelector: {}}]}
limits: {running: {pods: 2}}
temporaryOverrides: [{begin: "2026-11-27T11:00:00Z", end: "2026-11-27T11:30:00Z", limits: {running: {pods: 6}}}]`),
	))
	hour := func(hours float64) time.Time { return noon.Add(time.Duration(hours * float64(time.Hour))) }
	for _, step := range []struct {
		at     float64
		t1, t2 int64
		next   float64
	}{
		{0, 1, 2, 1},
		{1.5, 5, 2, 2},       // set forward, over the begin
		{0.5, 1, 2, 1},       // and back
		{5, 1, 2, 0},         // over everything
		{1.5, 5, 2, 2},       // back into the second override
		{-0.75, 1, 6, -0.5},  // back into the other one, which was over when the policies came
		{-10, 1, 2, -1},      // before everything
		{-0.5001, 1, 6, -.5}, // just before an end
	} {
		next, _ := k.Advance(hour(step.at))
		assert.Equal(t, step.t1, *l.limits["t1"].Running.Pods, step.at)
		assert.Equal(t, step.t2, *l.limits["t2"].Running.Pods, step.at)
		if step.next == 0 {
			assert.Zero(t, next, step.at)
			continue
		}
		assert.WithinDuration(t, hour(step.next), next, time.Nanosecond, step.at)
	}
}

// For any number of calls of Advance, the limiter gets nothing that it knows already.
func TestAdvanceReportsOnlyChanges(t *testing.T) {
	t.Parallel()
	l, k := newMatcher()
	k.SetPolicies(noon, compiled(policy(t, "t1", `
selector: {terms: [{podSelector: {}}]}
limits: {running: {pods: 1}}
temporaryOverrides: [{begin: "2026-11-27T11:00:00Z", end: "2026-11-27T14:00:00Z", limits: {running: {pods: 5}}}]`)))
	l.limits = nil
	for minute := range 120 {
		k.Advance(noon.Add(time.Duration(minute) * time.Minute))
	}
	assert.Nil(t, l.limits)
}

func TestSuspendedPoliciesBoundNothing(t *testing.T) {
	t.Parallel()
	l, k := newMatcher()
	k.SetPolicies(noon, compiled(policy(t, "t1", throttler)))
	k.Suspend(noon, true)
	require.Empty(t, l.limits)
	k.Suspend(noon, false)
	require.Len(t, l.limits, 1)
}

func TestFactsAreTakenOnlyWhenThereIsSomethingNewToTake(t *testing.T) {
	t.Parallel()
	_, k := newMatcher()
	var taken []bool
	set := func(policies ...*v1alpha1.StartPolicy) {
		if c := k.SetPolicies(noon, compiled(policies...)); c.NewFacts {
			taken = append(taken, c.Extract != nil)
		}
	}
	image := policy(t, "image", `{selector: {terms: [{podSelector: {}}]}, groupBy: ".spec.containers[0].image", limits: {starting: {pods: 1}}}`)
	set()
	require.Empty(t, taken)
	set(policy(t, "t1", throttler))
	require.Equal(t, []bool{true}, taken)
	set(policy(t, "t2", throttler))
	require.Len(t, taken, 1)
	set(policy(t, "t2", throttler), image)
	require.Len(t, taken, 2)
	set(policy(t, "t2", throttler))
	require.Len(t, taken, 2, "facts that were taken once are enough")
	set(policy(t, "t3", `{selector: {terms: [{podSelector: {matchLabels: {nobody: asked}}}]}, limits: {starting: {pods: 1}}}`))
	require.Len(t, taken, 3, "this label was not kept")
	set()
	require.Equal(t, []bool{true, true, true, false}, taken)
}

const byNamespace = `{selector: {terms: [{namespaceSelector: {matchLabels: {team: a}}}]}, limits: {running: {pods: 1}}}`

// While the labels of namespaces are unknown, a policy that needs them holds no pod. Other policies continue.
func TestAPolicyThatCannotBeEvaluatedHoldsNoPod(t *testing.T) {
	t.Parallel()
	l := newTold()
	k := New(l, false)
	broken := policy(t, "broken", throttler)
	broken.Spec.Scope = v1alpha1.ScopeCluster
	changes := k.SetPolicies(noon, compiled(policy(t, "teams", byNamespace), broken, policy(t, "t1", throttler)))
	require.Len(t, l.limits, 1)
	require.Contains(t, l.limits, "t1")
	require.Empty(t, k.Groups(noon, pod("a", nil, 1)))
	states := k.State()
	assert.Equal(t, namespacesUnknown, states[0].Fault)
	assert.Equal(t, unclaimed, states[1].Fault)
	assert.Empty(t, states[2].Fault)
	require.Len(t, changes.Faults, 2)
	require.Equal(t, namespacesUnknown, changes.Faults["teams"])
	changes = k.SetPolicies(noon, compiled(policy(t, "teams", byNamespace), broken))
	require.Empty(t, changes.Faults, "each fault is reported once")
	require.Empty(t, changes.Evaluated)
	broken.Spec.Scope = v1alpha1.ScopeNode
	changes = k.SetPolicies(noon, compiled(policy(t, "teams", byNamespace), broken))
	require.Equal(t, []string{"broken"}, changes.Evaluated)
	require.Empty(t, changes.Gone)
	changes = k.SetPolicies(noon, nil)
	require.Empty(t, changes.Evaluated)
	require.Equal(t, []string{"teams"}, changes.Gone)
}

func TestNamespacesAreWatchedOnceAPolicyNeedsTheirLabels(t *testing.T) {
	t.Parallel()
	log, _ := logtest.NewNullLogger()
	client := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "a"}}})
	watch := NewNamespaces(kubetest.Of(client), log)
	k := &locked{m: New(newTold(), true)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { watch.Run(ctx, k); done <- nil }()
	in := func(uid string) func() bool {
		return func() bool { return len(k.groups(noon, pod(uid, nil, 1))) == 1 }
	}
	require.False(t, k.setPolicies(policy(t, "t1", throttler)).NeedsNamespaces)
	require.False(t, in("a")())
	require.Empty(t, client.Actions())
	require.True(t, k.setPolicies(policy(t, "teams", byNamespace)).NeedsNamespaces)
	watch.Need()
	require.Eventually(t, in("a"), time.Minute, time.Millisecond)
	// A change between the list and the watch is lost here.
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(client.Actions(), func(a clienttest.Action) bool { return a.GetVerb() == "watch" })
	}, time.Minute, time.Millisecond)

	_, err := client.CoreV1().Namespaces().Update(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return !in("a")() }, time.Minute, time.Millisecond)
	cancel()
	require.NoError(t, <-done)
}

func TestWithoutClaimsTheScopeClusterHoldsNoPod(t *testing.T) {
	t.Parallel()
	registry := policy(t, "registry", "{scope: Cluster, selector: {terms: [{podSelector: {}}]}, limits: {starting: {pods: 1}}}")
	registry.UID = "its-uid"
	for _, server := range []bool{false, true} {
		l := newTold()
		k := New(l, server)
		k.SetPolicies(noon, compiled(registry))
		limits := map[string]throttle.GroupLimits{}
		if server {
			limits["registry"] = throttle.GroupLimits{Claims: &throttle.Claims{Owner: "its-uid", Slots: 1, OpenAfter: 30 * time.Second}}
		}
		require.Equal(t, limits, l.limits)
		require.Equal(t, server, len(k.Groups(noon, pod("a", nil, 1))) == 1)
		require.Equal(t, server, k.State()[0].Fault == "")
	}
}

func TestLimitsAreConvertedForTheLimiter(t *testing.T) {
	t.Parallel()
	limits := func(spec string) throttle.GroupLimits {
		return LimitsOf(policy(t, "p", "limits: "+spec).Spec.Limits)
	}
	zero := int64(0)
	assert.Equal(t, throttle.GroupLimits{
		Starting: throttle.Bound{Pods: &zero}, Running: throttle.Bound{Requests: throttle.Amounts{"memory": 1 << 30 * 1000, "nvidia.com/gpu": 2000}},
		Pacer: throttle.Pacer{MinInitial: 4, Multiplier: 1.5, MaxStagger: 16},
	}, limits(`{starting: {pods: 0}, running: {requests: {memory: 1Gi, nvidia.com/gpu: 2}}, pacer: {exponential: {minInitial: 4, multiplier: "1.5", maxStagger: 16}}}`))
	assert.Equal(t, throttle.Pacer{Step: 5, MaxStagger: 20}, limits(`{pacer: {linear: {step: 5, maxStagger: 20}}}`).Pacer)
}

// A pod without a running container is not ready. It counts as before.
func TestAPodWithoutARunningContainerIsNotReady(t *testing.T) {
	t.Parallel()
	l, k := newMatcher()
	k.SetPolicies(noon, compiled(policy(t, "t1", throttler)))
	a := pod("a", map[string]string{"throttle": "t1"}, 200)
	k.Runs(noon, a, true)
	k.Rests(noon, a)
	require.Equal(t, map[string]bool{"a": false}, l.running)
	k.Runs(noon, a, true)
	require.True(t, l.running["a"])
}

// An edit of the groups must not show a waiting pod a group with room that it does not have. The room would come from
// pods that have already left the group, or that have not yet joined it.
func TestPodsAreRegroupedInOneStep(t *testing.T) {
	t.Parallel()
	l := throttle.New(noon, throttle.Settings{})
	k := New(l, false)
	groupedBy := func(path string) []State {
		return compiled(policy(t, "p", "{selector: {terms: [{podSelector: {}}]}, limits: {running: {pods: 4}}, groupBy: "+path+"}"))
	}
	of := func(uid string) Pod {
		p := pod(uid, nil, 1)
		p.Facts.Values = map[string]string{".spec.nodeName": "node", ".spec.hostname": "host"}
		return p
	}
	k.SetPolicies(noon, groupedBy(".spec.nodeName"))
	for i := range 4 {
		k.Runs(noon, of(fmt.Sprint("runs-", i)), true)
	}
	var waiting []*throttle.Ticket
	for i := range 8 {
		p := of(fmt.Sprint("waits-", i))
		ticket := l.Join(noon, throttle.Request{UID: p.UID, Groups: k.Groups(noon, p)})
		ticket.Wait(noon)
		waiting = append(waiting, ticket)
	}
	k.SetPolicies(noon, groupedBy(".spec.hostname"))
	for _, ticket := range waiting {
		state, _ := ticket.Status()
		require.Equal(t, throttle.Waiting, state)
	}
}
