package throttle

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// herd returns an idle node with two cores. The given number of pods waits, and their costs are unknown.
func herd(t *testing.T, pods int) *node {
	t.Helper()
	n := newNode(t, Settings{Adaptive: &adaptive.Settings{Cores: 2}, StartTimeout: time.Hour})
	n.busy(0)
	for i := range pods {
		n.l.Join(n.now, Request{UID: fmt.Sprint(i), Profile: Profile{Kind: "web"}}).Wait(n.now)
	}
	return n
}

func (n *node) underWay() int { return len(n.l.Snapshot(n.now).Starting) }

func TestTheAdaptiveLimitUsesTheExpectedCostsOfWaitingPods(t *testing.T) {
	t.Parallel()
	n := herd(t, 0)
	waits := Profile{Kind: "web", Patience: 27 * time.Second, Cost: &costs.Cost{
		Count: 9, Seen: t0.Add(time.Minute), Idle: costs.Figure{Mean: 15}, CPU: costs.Figure{Mean: 0.1}, Peak: costs.Figure{Mean: 1},
	}}
	for i := range 9 {
		n.l.Join(n.now, Request{UID: fmt.Sprint(i), Profile: waits}).Wait(n.now)
	}
	require.Equal(t, 9, n.underWay(), n.l.Snapshot(n.now).Adaptive)

	n = herd(t, 9)
	require.Equal(t, 3, n.underWay(), "nothing is known: %s", n.l.Snapshot(n.now).Adaptive)
	known := map[string]Profile{"gone": waits}
	for i := range 9 {
		known[fmt.Sprint(i)] = waits
	}
	n.l.SetProfiles(n.now, known)
	require.Equal(t, 9, n.underWay(), n.l.Snapshot(n.now).Adaptive)
}

// The adaptive limit is for the pods that may start. When a policy lets more go, it is for these at once.
func TestTheAdaptiveLimitCountsPodsThatAPolicyLetsGo(t *testing.T) {
	t.Parallel()
	waits := Profile{Kind: "web", Patience: 27 * time.Second, Cost: &costs.Cost{
		Count: 9, Seen: t0.Add(-time.Minute), Idle: costs.Figure{Mean: 15}, CPU: costs.Figure{Mean: 0.1}, Peak: costs.Figure{Mean: 1},
	}}
	full := GroupLimits{Running: Bound{Requests: Amounts{"cpu": 900}}}
	for name, c := range map[string]struct {
		limits GroupLimits
		lets   func(n *node)
	}{
		"the policy is gone":           {full, func(n *node) { n.l.SetPolicies(n.now, nil) }},
		"a pod leaves its group":       {full, func(n *node) { n.l.SetGroups(n.now, PodGroups{UID: "runs", Running: true}) }},
		"a pod of its group has ended": {full, func(n *node) { n.l.Finished(n.now, "runs") }},
		"a pod before them is gone":    {GroupLimits{Running: Bound{Requests: Amounts{"cpu": 2000}}}, func(n *node) { n.end("great", reasons.Deleted) }},
		"claims come":                  {GroupLimits{Claims: &Claims{}}, func(n *node) { n.l.SetClaims(n.now, t1, 9) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := herd(t, 0)
			n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": c.limits})
			n.l.SetGroups(n.now, PodGroups{UID: "runs", Groups: in(t1, Amounts{"cpu": 900}), Running: true})
			if name == "a pod before them is gone" {
				n.l.Join(n.now, Request{UID: "great", Groups: in(t1, Amounts{"cpu": 1200})}).Wait(n.now)
			}
			for i := range 9 {
				n.l.Join(n.now, Request{UID: fmt.Sprint(i), Groups: in(t1, Amounts{"cpu": 100}), Profile: waits}).Wait(n.now)
			}
			n.busy(0)
			require.Zero(t, n.underWay())
			c.lets(n)
			require.Equal(t, 9, n.underWay(), n.l.Snapshot(n.now).Adaptive)
		})
	}
}

// Starts of a known kind idle for 15 s and then burn CPU. Two may burn at once, and two more every 3 s after
// them. Kubelet would try these again only after 15 s, so they have places in the gate.
func TestPodsThatMayStartBeforeTheyWouldComeBackHavePlaces(t *testing.T) {
	t.Parallel()
	idles := Profile{Kind: "web", Patience: 25 * time.Second, Cost: &costs.Cost{
		Count: 9, Seen: t0.Add(-time.Hour), Idle: costs.Figure{Mean: 15}, CPU: costs.Figure{Mean: 3}, Peak: costs.Figure{Mean: 1},
	}}
	n := newNode(t, Settings{Adaptive: &adaptive.Settings{Cores: 2}, StartTimeout: time.Hour})
	n.busy(0)
	n.pass(time.Second)
	n.busy(0)
	var admitted []bool
	for i := range 18 {
		ticket := n.l.Join(n.now, Request{UID: fmt.Sprint(i), Profile: idles})
		if ticket.TryStart(n.now).Granted {
			continue
		}
		admitted = append(admitted, ticket.Reserve(n.now, 100*time.Second, RetriedSoon).Granted)
	}
	require.Equal(t, 2, n.underWay(), n.l.Snapshot(n.now).Adaptive)
	require.Equal(t, append(slices.Repeat([]bool{true}, 10), slices.Repeat([]bool{false}, 6)...), admitted)
}

// A pod that idles until those before it have burned their CPU time starts before them, whatever its namespace, but not
// before pods of its namespace that have a higher priority.
func TestAPodThatDelaysNoneBeforeItPassesThem(t *testing.T) {
	t.Parallel()
	cost := func(idle, cpu float64) *costs.Cost {
		return &costs.Cost{
			Count: 9, Seen: t0.Add(time.Minute), Idle: costs.Figure{Mean: idle}, CPU: costs.Figure{Mean: cpu}, Peak: costs.Figure{Mean: 1},
		}
	}
	burner := Profile{Kind: "burner", Patience: 16 * time.Second, Cost: cost(0, 4)}
	sleeper := Profile{Kind: "sleeper", Patience: 10 * time.Minute, Cost: cost(60, 1)}
	for _, unfair := range []bool{false, true} {
		n := newNode(t, Settings{Adaptive: &adaptive.Settings{Cores: 2}, StartTimeout: time.Hour, NoFairness: unfair})
		n.busy(0)
		for i := range 6 {
			n.l.Join(n.now, Request{UID: fmt.Sprint("burner-", i), Flow: "a", Profile: burner}).Wait(n.now)
		}
		n.requireStarting("burner-0", "burner-1")
		n.l.Join(n.now, Request{UID: "sleeper-0", Flow: "a", Profile: sleeper}).Wait(n.now)
		n.l.Join(n.now, Request{UID: "sleeper-1", Flow: "b", Profile: sleeper}).Wait(n.now)
		n.l.Join(n.now, Request{UID: "sleeper-2", Flow: "a", Profile: sleeper, Priority: -1}).Wait(n.now)
		n.requireStarting("burner-0", "burner-1", "sleeper-0", "sleeper-1")
		n.requireWaiting("burner-2", "burner-3", "burner-4", "burner-5", "sleeper-2")
	}
}

func TestTheSameProfileAgainChangesNothing(t *testing.T) {
	t.Parallel()
	n := herd(t, 1)
	set := func(p Profile) (decided bool) {
		n.l.SetProfiles(n.now, map[string]Profile{"0": p})
		return n.l.Changed()
	}
	set(Profile{Kind: "web"})
	for _, e := range []Profile{
		{Kind: "other"},
		{Kind: "other", Patience: time.Minute},
		{Kind: "other", Patience: time.Minute, Cost: &costs.Cost{}},
		{Kind: "other", Patience: time.Minute, Cost: &costs.Cost{Count: 1}},
		{Kind: "other", Patience: 2 * time.Minute, Cost: &costs.Cost{Count: 1}},
		{Kind: "other", Patience: 2 * time.Minute},
	} {
		require.True(t, set(e), e)
		if e.Cost != nil {
			again := *e.Cost
			e.Cost = &again
		}
		require.False(t, set(e), e)
	}
}

func TestTheAdaptiveLimitUsesTheMeasuredUseOfStarts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		use  adaptive.Use
		want int
	}{{adaptive.Use{Cores: 3, CPU: 3 * time.Second}, 1}, {adaptive.Use{}, 2}} {
		n := herd(t, 1)
		n.now = n.now.Add(3 * time.Second)
		n.l.Lookup("0").SetUse(c.use)
		n.l.Lookup("gone").SetUse(c.use)
		n.l.Join(n.now, Request{UID: "other", Profile: Profile{Kind: "other"}}).Wait(n.now)
		require.Equal(t, c.want, n.underWay(), "%v: %s", c.use, n.l.Snapshot(n.now).Adaptive)
	}
}

// A container that no probe watches ended by itself. The adaptive limit is not halved for it.
func TestOnlyAStartThatAProbeWatchesCanHaveBeenKilled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		profile Profile
		lost    bool
	}{
		"no probe": {Profile{Kind: "job"}, false},
		"a probe":  {Profile{Kind: "web", Patience: 27 * time.Second}, true},
		"unknown":  {Profile{}, true},
	} {
		n := newNode(t, Settings{})
		ticket := n.l.Join(n.now, Request{UID: "a", Profile: c.profile})
		require.True(t, ticket.TryStart(n.now).Granted)
		n.pass(lostAfter)
		ticket.End(n.now, reasons.Exited)
		require.Equal(t, c.lost, !n.l.slots.lost.IsZero(), name)
	}
}

// What the adaptive limit found of the pods that wait must not order them under a fixed one.
func TestAFixedLimitForgetsWhomTheAdaptiveOneLetsPass(t *testing.T) {
	n := testNode(t, Settings{Adaptive: &adaptive.Settings{Cores: 2}, MaxConcurrent: 1}, "holder", "first", "second")
	n.l.Lookup("second").passes = true
	n.l.Configure(n.now, Settings{MaxConcurrent: 1})
	n.end("holder", reasons.Ready)
	n.requireStarting("first")
}
