package policies

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// noon is the time at which the tests begin.
var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// holder has the present Set.
type holder struct{ *Set }

// put replaces the Set. It returns the Changes.
func (h *holder) put(s *Set, c *Changes) *Changes {
	h.Set = s
	return c
}

// set replaces the policies.
func (h *holder) set(inForce ...*v1alpha1.StartPolicy) *Changes {
	return h.put(h.WithPolicies(noon, compiled(inForce...)))
}

// newHolder returns a holder of a Set without policies.
func newHolder() *holder { return &holder{New(true)} }

func compiled(inForce ...*v1alpha1.StartPolicy) []State { return Compile(inForce) }

func policy(t *testing.T, name, spec string) *v1alpha1.StartPolicy {
	t.Helper()
	p := &v1alpha1.StartPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &p.Spec))
	return p
}

const throttler = `{selector: {terms: [{podSelector: {matchLabels: {throttle: t1}}}]}, limits: {running: {requests: {cpu: 200m}}}}`

func pod(labels map[string]string, milliCPU int64) Pod {
	return Pod{Namespace: "shop", Facts: startpolicy.Facts{Labels: labels, Requests: map[string]int64{"cpu": milliCPU}}}
}

func keys(groups []throttle.Membership) (all []throttle.GroupKey) {
	for _, g := range groups {
		all = append(all, g.Key)
	}
	return all
}

func TestPodsAreInTheGroupsOfThePoliciesInForce(t *testing.T) {
	t.Parallel()
	k := newHolder()
	t1 := map[string]string{"throttle": "t1"}
	a := pod(t1, 200)
	require.Empty(t, k.Groups(a))

	k.set(policy(t, "t1", throttler))
	require.Equal(t, throttle.Amounts{"cpu": 200}, k.Limits()["t1"].Running.Requests)
	require.Equal(t, []throttle.Membership{{Key: throttle.GroupKey{Policy: "t1"}, Requests: throttle.Amounts{"cpu": 200}}}, k.Groups(a))
	require.Empty(t, k.Groups(pod(nil, 300)))

	before := k.Set
	k.set(policy(t, "t2", throttler), policy(t, "t1", throttler))
	require.Equal(t, []throttle.GroupKey{{Policy: "t2"}, {Policy: "t1"}}, keys(k.Groups(a)))
	require.Equal(t, []throttle.GroupKey{{Policy: "t1"}}, keys(before.Groups(a)), "a Set never changes")
	k.set()
	require.Empty(t, k.Limits())
	require.Empty(t, k.Groups(a))
}

func TestOverridesBeginAndEndByThemselves(t *testing.T) {
	t.Parallel()
	k := newHolder()
	k.set(policy(t, "t1", `
selector: {terms: [{podSelector: {}}]}
limits: {running: {pods: 1}}
temporaryOverrides: [{begin: "2026-11-27T13:00:00Z", end: "2026-11-27T14:00:00Z", limits: {running: {pods: 5}}}]`))
	pods := func() int64 { return *k.Limits()["t1"].Running.Pods }
	next := k.Next()
	require.True(t, next.Equal(noon.Add(time.Hour)))
	require.EqualValues(t, 1, pods())
	before := k.Set
	changes := k.put(k.Advance(next))
	require.Equal(t, []string{"t1"}, changes.Overridden)
	require.EqualValues(t, 5, pods())
	require.EqualValues(t, 1, *before.State()[0].Calculated.Limits.Running.Pods, "a Set never changes")
	require.EqualValues(t, 5, *k.State()[0].Calculated.Limits.Running.Pods)
	k.put(k.Advance(noon.Add(2 * time.Hour)))
	require.EqualValues(t, 5, pods(), "at its end, the override is still in force")
	next = k.Next()
	require.True(t, next.After(noon.Add(2*time.Hour)))
	changes = k.put(k.Advance(next))
	require.Zero(t, k.Next())
	require.Equal(t, []string{"t1"}, changes.Overridden)
	require.EqualValues(t, 1, pods())
}

// The clock of a node may be set. Only the present time counts, not the way to it.
func TestOverridesFollowAClockThatIsSet(t *testing.T) {
	t.Parallel()
	k := newHolder()
	k.set(
		policy(t, "t1", `
selector: {terms: [{podSelector: {}}]}
limits: {running: {pods: 1}}
temporaryOverrides: [{begin: "2026-11-27T13:00:00Z", end: "2026-11-27T14:00:00Z", limits: {running: {pods: 5}}}]`),
		policy(t, "t2", `
selector: {terms: [{podSelector: {}}]}
limits: {running: {pods: 2}}
temporaryOverrides: [{begin: "2026-11-27T11:00:00Z", end: "2026-11-27T11:30:00Z", limits: {running: {pods: 6}}}]`),
	)
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
		k.put(k.Advance(hour(step.at)))
		next := k.Next()
		assert.Equal(t, step.t1, *k.Limits()["t1"].Running.Pods, step.at)
		assert.Equal(t, step.t2, *k.Limits()["t2"].Running.Pods, step.at)
		if step.next == 0 {
			assert.Zero(t, next, step.at)
			continue
		}
		assert.WithinDuration(t, hour(step.next), next, time.Nanosecond, step.at)
	}
}

// For any number of calls of Advance, nothing changes that has not changed.
func TestAdvanceReportsOnlyChanges(t *testing.T) {
	t.Parallel()
	k := newHolder()
	k.set(policy(t, "t1", `
selector: {terms: [{podSelector: {}}]}
limits: {running: {pods: 1}}
temporaryOverrides: [{begin: "2026-11-27T11:00:00Z", end: "2026-11-27T14:00:00Z", limits: {running: {pods: 5}}}]`))
	for minute := range 120 {
		next, changes := k.Advance(noon.Add(time.Duration(minute) * time.Minute))
		require.Same(t, k.Set, next)
		require.Nil(t, changes)
	}
}

func TestTheModeDecidesWhichPoliciesLimit(t *testing.T) {
	t.Parallel()
	k := newHolder()
	cluster := policy(t, "registry", `{scope: Cluster, selector: {terms: [{podSelector: {}}]}, limits: {starting: {pods: 1}}}`)
	cluster.UID = "uid"
	k.set(policy(t, "t1", throttler), cluster)
	require.Len(t, k.Limits(), 2)
	k.put(k.InMode(noon, v1alpha1.ModeDisabled))
	require.Empty(t, k.Limits())
	k.put(k.InMode(noon, v1alpha1.ModeShadow))
	require.Len(t, k.Limits(), 1)
	require.Contains(t, k.Limits(), "t1")
	k.put(k.InMode(noon, v1alpha1.ModeEnforce))
	same, _ := k.InMode(noon, v1alpha1.ModeEnforce)
	require.Same(t, k.Set, same)
	require.Len(t, k.Limits(), 2)
}

func TestFactsAreTakenOnlyWhenThereIsSomethingNewToTake(t *testing.T) {
	t.Parallel()
	k := newHolder()
	var taken []bool
	set := func(policies ...*v1alpha1.StartPolicy) {
		if c := k.set(policies...); c.NewFacts {
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
	k := &holder{New(false)}
	broken := policy(t, "broken", throttler)
	broken.Spec.Scope = v1alpha1.ScopeCluster
	changes := k.set(policy(t, "teams", byNamespace), broken, policy(t, "t1", throttler))
	require.Len(t, k.Limits(), 1)
	require.Contains(t, k.Limits(), "t1")
	require.Empty(t, k.Groups(pod(nil, 1)))
	states := k.State()
	assert.Equal(t, namespacesUnknown, states[0].Fault)
	assert.Equal(t, unclaimed, states[1].Fault)
	assert.Empty(t, states[2].Fault)
	require.Len(t, changes.Faults, 2)
	require.Equal(t, namespacesUnknown, changes.Faults["teams"])
	changes = k.set(policy(t, "teams", byNamespace), broken)
	require.Empty(t, changes.Faults, "each fault is reported once")
	require.Empty(t, changes.Evaluated)
	broken.Spec.Scope = v1alpha1.ScopeNode
	changes = k.set(policy(t, "teams", byNamespace), broken)
	require.Equal(t, []string{"broken"}, changes.Evaluated)
	require.Empty(t, changes.Gone)
	changes = k.set()
	require.Empty(t, changes.Evaluated)
	require.Equal(t, []string{"teams"}, changes.Gone)
}

func TestWithoutClaimsTheScopeClusterHoldsNoPod(t *testing.T) {
	t.Parallel()
	registry := policy(t, "registry", "{scope: Cluster, selector: {terms: [{podSelector: {}}]}, limits: {starting: {pods: 1}}}")
	registry.UID = "its-uid"
	for _, server := range []bool{false, true} {
		k := &holder{New(server)}
		k.set(registry)
		limits := map[string]throttle.GroupLimits{}
		if server {
			limits["registry"] = throttle.GroupLimits{Claims: &throttle.Claims{Owner: "its-uid", Slots: 1, OpenAfter: 30 * time.Second}}
		}
		require.Equal(t, limits, k.Limits())
		require.Equal(t, server, len(k.Groups(pod(nil, 1))) == 1)
		require.Equal(t, server, k.State()[0].Fault == "")
	}
}

func TestAPolicyOfEachScopeCanShortenMaxWait(t *testing.T) {
	t.Parallel()
	for _, scope := range []string{"Node", "Cluster"} {
		k, p := newHolder(), policy(t, "p", "{scope: "+scope+", maxWait: 4m, selector: {terms: [{podSelector: {}}]}, limits: {starting: {pods: 1}}}")
		p.UID = "its-uid"
		k.set(p)
		require.Equal(t, 4*time.Minute, k.Limits()["p"].MaxWait, scope)
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
