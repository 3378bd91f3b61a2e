package policies

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
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
	"github.com/pod-pacemaker/pod-pacemaker/plugin/leases"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// noon is when tests begin.
var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// told is a Limiter that remembers what it was told.
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
	log, _ := logtest.NewNullLogger()
	l := newTold()
	return l, New(Options{Limiter: l, Log: log})
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
	require.Empty(t, k.See(noon, pod("a", t1, 200)))

	k.SetPolicies(noon, []*v1alpha1.StartPolicy{policy(t, "t1", throttler)})
	require.Equal(t, throttle.Amounts{"cpu": 200}, l.limits["t1"].Running.Requests)
	require.Equal(t, []throttle.Membership{{Key: throttle.GroupKey{Policy: "t1"}, Requests: throttle.Amounts{"cpu": 200}}}, l.groups["a"])
	require.Equal(t, []throttle.GroupKey{{Policy: "t1"}}, keys(k.See(noon, pod("b", t1, 300))))
	require.Empty(t, k.See(noon, pod("c", nil, 300)))

	calls := l.calls
	k.Runs(noon, pod("a", t1, 200), false)
	k.Runs(noon, pod("a", t1, 200), false)
	k.Runs(noon, pod("a", t1, 200), true)
	require.Equal(t, calls+2, l.calls, "the limiter is told what is new")
	require.True(t, l.running["a"])

	k.See(noon, pod("c", t1, 300))
	require.Equal(t, []throttle.GroupKey{{Policy: "t1"}}, keys(l.groups["c"]), "its labels have changed")

	k.SetPolicies(noon, []*v1alpha1.StartPolicy{policy(t, "t2", throttler), policy(t, "t1", throttler)})
	require.Equal(t, []throttle.GroupKey{{Policy: "t2"}, {Policy: "t1"}}, keys(l.groups["a"]))
	require.True(t, l.running["a"], "it runs as before")
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
	k.SetPolicies(noon, []*v1alpha1.StartPolicy{policy(t, "t1", `
selector: {terms: [{podSelector: {}}]}
limits: {running: {pods: 1}}
temporaryOverrides: [{begin: "2026-11-27T13:00:00Z", end: "2026-11-27T14:00:00Z", limits: {running: {pods: 5}}}]`)})
	pods := func() int64 { return *l.limits["t1"].Running.Pods }
	next := k.Advance(noon)
	require.True(t, next.Equal(noon.Add(time.Hour)))
	require.EqualValues(t, 1, pods())
	next = k.Advance(next)
	require.EqualValues(t, 5, pods())
	require.EqualValues(t, 5, *k.State()[0].Calculated.Limits.Running.Pods)
	k.Advance(noon.Add(2 * time.Hour))
	require.EqualValues(t, 5, pods(), "at its end it is in force")
	require.True(t, next.After(noon.Add(2*time.Hour)))
	require.Zero(t, k.Advance(next))
	require.EqualValues(t, 1, pods())
}

// The clock of a node may be set: what counts is what it shows now, not how it got there.
func TestOverridesFollowAClockThatIsSet(t *testing.T) {
	t.Parallel()
	l, k := newMatcher()
	k.SetPolicies(noon, []*v1alpha1.StartPolicy{
		policy(t, "t1", `
selector: {terms: [{podSelector: {}}]}
limits: {running: {pods: 1}}
temporaryOverrides: [{begin: "2026-11-27T13:00:00Z", end: "2026-11-27T14:00:00Z", limits: {running: {pods: 5}}}]`),
		policy(t, "t2", `
selector: {terms: [{podSelector: {}}]}
limits: {running: {pods: 2}}
temporaryOverrides: [{begin: "2026-11-27T11:00:00Z", end: "2026-11-27T11:30:00Z", limits: {running: {pods: 6}}}]`),
	})
	hour := func(hours float64) time.Time { return noon.Add(time.Duration(hours * float64(time.Hour))) }
	for _, step := range []struct {
		at     float64
		t1, t2 int64
		next   float64
	}{
		{0, 1, 2, 1},
		{1.5, 5, 2, 2},       // set forward, over the begin
		{0.5, 1, 2, 1},       // and back
		{5, 1, 2, 0},         // over all
		{1.5, 5, 2, 2},       // back into it
		{-0.75, 1, 6, -0.5},  // back into the other, that was over when the policies came
		{-10, 1, 2, -1},      // before everything
		{-0.5001, 1, 6, -.5}, // just before an end
	} {
		next := k.Advance(hour(step.at))
		assert.Equal(t, step.t1, *l.limits["t1"].Running.Pods, step.at)
		assert.Equal(t, step.t2, *l.limits["t2"].Running.Pods, step.at)
		if step.next == 0 {
			assert.Zero(t, next, step.at)
			continue
		}
		assert.WithinDuration(t, hour(step.next), next, time.Nanosecond, step.at)
	}
}

// However often Advance is called, the limiter is told nothing that it knows.
func TestAdvanceTellsOnlyWhatIsNew(t *testing.T) {
	t.Parallel()
	l, k := newMatcher()
	k.SetPolicies(noon, []*v1alpha1.StartPolicy{policy(t, "t1", `
selector: {terms: [{podSelector: {}}]}
limits: {running: {pods: 1}}
temporaryOverrides: [{begin: "2026-11-27T11:00:00Z", end: "2026-11-27T14:00:00Z", limits: {running: {pods: 5}}}]`)})
	l.limits = nil
	for minute := range 120 {
		k.Advance(noon.Add(time.Duration(minute) * time.Minute))
	}
	assert.Nil(t, l.limits)
}

func TestSuspendedPoliciesBoundNothing(t *testing.T) {
	t.Parallel()
	l, k := newMatcher()
	k.SetPolicies(noon, []*v1alpha1.StartPolicy{policy(t, "t1", throttler)})
	k.Suspend(noon, true)
	require.Empty(t, l.limits)
	k.Suspend(noon, false)
	require.Len(t, l.limits, 1)
}

func TestFactsAreTakenOnlyWhenThereIsSomethingNewToTake(t *testing.T) {
	t.Parallel()
	log, _ := logtest.NewNullLogger()
	var taken []bool
	k := New(Options{Limiter: newTold(), Log: log, ExtractFacts: func(take func(*corev1.Pod) startpolicy.Facts) { taken = append(taken, take != nil) }})
	image := policy(t, "image", `{selector: {terms: [{podSelector: {}}]}, groupBy: ".spec.containers[0].image", limits: {starting: {pods: 1}}}`)
	k.SetPolicies(noon, nil)
	require.Empty(t, taken)
	k.SetPolicies(noon, []*v1alpha1.StartPolicy{policy(t, "t1", throttler)})
	require.Equal(t, []bool{true}, taken)
	k.SetPolicies(noon, []*v1alpha1.StartPolicy{policy(t, "t2", throttler)})
	require.Len(t, taken, 1)
	k.SetPolicies(noon, []*v1alpha1.StartPolicy{policy(t, "t2", throttler), image})
	require.Len(t, taken, 2)
	k.SetPolicies(noon, []*v1alpha1.StartPolicy{policy(t, "t2", throttler)})
	require.Len(t, taken, 2, "the value that is taken does no harm")
	labelled := policy(t, "t3", `{selector: {terms: [{podSelector: {matchLabels: {nobody: asked}}}]}, limits: {starting: {pods: 1}}}`)
	k.SetPolicies(noon, []*v1alpha1.StartPolicy{labelled})
	require.Len(t, taken, 3, "a label that was not kept")
	k.SetPolicies(noon, nil)
	require.Equal(t, []bool{true, true, true, false}, taken)
}

const byNamespace = `{selector: {terms: [{namespaceSelector: {matchLabels: {team: a}}}]}, limits: {running: {pods: 1}}}`

// While the labels of namespaces are not known, a policy that needs them holds no pod,
// and others go on.
func TestAPolicyThatCannotBeEvaluatedHoldsNobody(t *testing.T) {
	t.Parallel()
	log, lines := logtest.NewNullLogger()
	l := newTold()
	k := New(Options{Limiter: l, Log: log})
	broken := policy(t, "broken", throttler)
	broken.Spec.GroupBy = ".spec.containers[0"
	k.SetPolicies(noon, []*v1alpha1.StartPolicy{policy(t, "teams", byNamespace), broken, policy(t, "t1", throttler)})
	require.Len(t, l.limits, 1)
	require.Contains(t, l.limits, "t1")
	require.Empty(t, k.See(noon, pod("a", nil, 1)))
	states := k.State()
	assert.Equal(t, namespacesUnknown, states[0].Fault)
	assert.Contains(t, states[1].Fault, "spec.groupBy")
	assert.Empty(t, states[2].Fault)
	require.Len(t, lines.AllEntries(), 2)
	k.SetPolicies(noon, []*v1alpha1.StartPolicy{policy(t, "teams", byNamespace), broken})
	require.Len(t, lines.AllEntries(), 2, "what is wrong is said once")
}

func TestNamespacesAreWatchedOnceAPolicyNeedsTheirLabels(t *testing.T) {
	t.Parallel()
	log, _ := logtest.NewNullLogger()
	client := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "a"}}})
	watch := NewNamespaces(kubetest.Of(client), log)
	l := newTold()
	k := New(Options{Limiter: l, Log: log, WatchNamespaces: watch.Need})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { watch.Run(ctx, k); done <- nil }()
	in := func(uid string) func() bool {
		return func() bool { return len(k.See(noon, pod(uid, nil, 1))) == 1 }
	}
	k.SetPolicies(noon, []*v1alpha1.StartPolicy{policy(t, "t1", throttler)})
	require.False(t, in("a")())
	require.Empty(t, client.Actions())
	k.SetPolicies(noon, []*v1alpha1.StartPolicy{policy(t, "teams", byNamespace)})
	require.Eventually(t, in("a"), time.Minute, time.Millisecond)
	// What changes between the list and the watch is lost here.
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(client.Actions(), func(a clienttest.Action) bool { return a.GetVerb() == "watch" })
	}, time.Minute, time.Millisecond)

	_, err := client.CoreV1().Namespaces().Update(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return !in("a")() }, time.Minute, time.Millisecond)
	cancel()
	require.NoError(t, <-done)
}

func TestWithoutClaimsTheScopeClusterHoldsNobody(t *testing.T) {
	t.Parallel()
	log, _ := logtest.NewNullLogger()
	registry := policy(t, "registry", "{scope: Cluster, selector: {terms: [{podSelector: {}}]}, limits: {starting: {pods: 1}}}")
	registry.UID = "its-uid"
	for _, claims := range []bool{false, true} {
		l := newTold()
		o := Options{Limiter: l, Log: log}
		var told map[string]leases.Policy
		if claims {
			o.Claims = func(policies map[string]leases.Policy) { told = policies }
		}
		k := New(o)
		k.SetPolicies(noon, []*v1alpha1.StartPolicy{registry})
		if claims {
			require.Equal(t, map[string]leases.Policy{"registry": {UID: "its-uid", Slots: 1, OpenAfter: 30 * time.Second}}, told)
		}
		require.Equal(t, claims, l.limits["registry"].Claims)
		require.Equal(t, claims, len(k.See(noon, pod("a", nil, 1))) == 1)
		require.Equal(t, claims, k.State()[0].Fault == "")
	}
}

func TestLimitsMeanTheSameForTheLimiter(t *testing.T) {
	t.Parallel()
	limits := func(spec string, scope v1alpha1.PolicyScope) throttle.GroupLimits {
		return LimitsOf(policy(t, "p", "limits: "+spec).Spec.Limits, scope)
	}
	zero := int64(0)
	assert.Equal(t, throttle.GroupLimits{
		Starting: throttle.Bound{Pods: &zero}, Running: throttle.Bound{Requests: throttle.Amounts{"memory": 1 << 30 * 1000, "nvidia.com/gpu": 2000}},
		Pacer: throttle.Pacer{MinInitial: 4, Multiplier: 1.5, MaxStagger: 16},
	}, limits(`{starting: {pods: 0}, running: {requests: {memory: 1Gi, nvidia.com/gpu: 2}}, pacer: {exponential: {minInitial: 4, multiplier: "1.5", maxStagger: 16}}}`, v1alpha1.ScopeNode))
	assert.Equal(t, throttle.Pacer{Step: 5, MaxStagger: 20}, limits(`{pacer: {linear: {step: 5, maxStagger: 20}}}`, v1alpha1.ScopeNode).Pacer)
	assert.Equal(t, throttle.GroupLimits{Claims: true}, limits(`{starting: {pods: 3}}`, v1alpha1.ScopeCluster))
}

// A pod of which no container runs is not ready; it counts as before.
func TestWhoeverHasNoContainerThatRunsIsNotReady(t *testing.T) {
	t.Parallel()
	l, k := newMatcher()
	k.SetPolicies(noon, []*v1alpha1.StartPolicy{policy(t, "t1", throttler)})
	a := pod("a", map[string]string{"throttle": "t1"}, 200)
	k.Runs(noon, a, true)
	k.See(noon, a)
	require.Equal(t, map[string]bool{"a": false}, l.running)
	k.Runs(noon, a, true)
	require.True(t, l.running["a"])
}

// An edit of the groups shows nobody who waits a group with room that it does not have,
// because some pods have left it already or others have yet to come.
func TestPodsAreRegroupedInOneStep(t *testing.T) {
	t.Parallel()
	log, _ := logtest.NewNullLogger()
	l := throttle.New(noon, throttle.Settings{})
	k := New(Options{Limiter: l, Log: log})
	groupedBy := func(path string) []*v1alpha1.StartPolicy {
		return []*v1alpha1.StartPolicy{policy(t, "p", "{selector: {terms: [{podSelector: {}}]}, limits: {running: {pods: 4}}, groupBy: "+path+"}")}
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
		ticket := k.Join(noon, p, func(groups []throttle.Membership) *throttle.Ticket {
			return l.Join(noon, throttle.Request{UID: p.UID, Groups: groups})
		})
		ticket.Wait(noon)
		waiting = append(waiting, ticket)
	}
	k.SetPolicies(noon, groupedBy(".spec.hostname"))
	for _, ticket := range waiting {
		state, _ := ticket.Status()
		require.Equal(t, throttle.Waiting, state)
	}
}

// lineHook calls a function at every line of the log.
type lineHook func()

func (lineHook) Levels() []logrus.Level { return logrus.AllLevels }

func (h lineHook) Fire(*logrus.Entry) error { h(); return nil }

func TestWhilePoliciesAreCompiledNobodyWaits(t *testing.T) {
	t.Parallel()
	log, _ := logtest.NewNullLogger()
	k := New(Options{Limiter: newTold(), Log: log})
	lines, locked := 0, 0
	log.AddHook(lineHook(func() { // of a policy that is just being compiled
		lines++
		if !k.mu.TryLock() {
			locked++
			return
		}
		k.mu.Unlock()
	}))
	k.SetPolicies(noon, []*v1alpha1.StartPolicy{policy(t, "t1", `{selector: {terms: [{podSelector: {}}]},
limits: {starting: {pods: 1}}, temporaryOverrides: [{begin: tomorrow, end: "2026-11-28", limits: {starting: {pods: 2}}}]}`)})
	assert.Positive(t, lines)
	assert.Zero(t, locked, "a handler would wait for the lock")
}
