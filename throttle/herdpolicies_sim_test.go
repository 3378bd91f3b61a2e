//go:build sim

package throttle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// behind plays 50 pods that no policy bounds, behind a group of the given size. It returns how long they took.
func behind(t *testing.T, seed uint64, group int, limits GroupLimits) time.Duration {
	t.Helper()
	k := newKubelet(t, seed, Settings{MaxConcurrent: 2, MaxWait: 24 * time.Hour})
	k.l.SetPolicies(t0, map[string]GroupLimits{"t1": limits})
	k.l.SetGroups(t0, PodGroups{UID: "elsewhere", Groups: in(t1, Amounts{"cpu": 500}), Running: true, Ready: false})
	for range group {
		k.create(0, &simPod{groups: in(t1, Amounts{"cpu": 200}), works: time.Second})
		k.left-- // the play does not wait for it
	}
	for range 50 {
		k.create(time.Second, k.ofCost(4*time.Second))
	}
	took := k.run()
	require.Zero(t, k.admitted[reasons.MaxWait])
	return took
}

// A policy holds a hundred pods, which wait before fifty pods that no policy bounds. The fifty take as long as
// without them, for any kind of bound.
func TestAHeldGroupBeforeAHerdCostsItNothing(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]GroupLimits{
		"no pod may start": {Starting: pods(0)},
		"no pod may run":   {Running: pods(0)},
		"as many run":      {Running: pods(1)},
		"as much runs":     {Running: Bound{Requests: Amounts{"cpu": 600}}},
		"a pacer":          {Pacer: Pacer{MinInitial: 1, Multiplier: 2, MaxStagger: 50}},
		"no claims":        {Claims: &Claims{}},
		"starts too much":  {Starting: Bound{Requests: Amounts{"cpu": 100}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const seeds = 20
			var with, without time.Duration
			for seed := range uint64(seeds) {
				with += behind(t, seed, 100, limits)
				without += behind(t, seed, 0, limits)
			}
			ratio := with.Seconds() / without.Seconds()
			t.Logf("%.3f times as long", ratio)
			require.LessOrEqual(t, ratio, 1.02)
		})
	}
}

// The same with a group that starts one pod at a time, which never becomes ready. A hundred pods of it cost hardly
// more than two, when one of them is overdue and passes the bound.
func TestAGroupThatStartsOneAtATimeCostsAHerdLittle(t *testing.T) {
	t.Parallel()
	const seeds = 10
	var with, without time.Duration
	for seed := range uint64(seeds) {
		play := func(group int) time.Duration {
			k := newKubelet(t, seed, Settings{MaxConcurrent: 3, MaxWait: 24 * time.Hour, StartTimeout: time.Hour})
			k.l.SetPolicies(t0, map[string]GroupLimits{"t1": {Starting: pods(1)}})
			for range group {
				k.create(0, &simPod{groups: in(t1, nil), works: time.Hour})
				k.left--
			}
			for range 50 {
				k.create(time.Second, k.ofCost(4*time.Second))
			}
			return k.run()
		}
		with += play(100)
		without += play(2)
	}
	ratio := with.Seconds() / without.Seconds()
	t.Logf("%.3f times as long", ratio)
	require.LessOrEqual(t, ratio, 1.15)
}
