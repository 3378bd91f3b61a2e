//go:build sim

package throttle

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// ofCost returns a pod that works for about this long.
func (k *kubelet) ofCost(d time.Duration) *simPod {
	return &simPod{works: k.between(d*8/10, d*12/10)}
}

// Midway through a herd, starts take ten times as long. Pods with an earlier reservation still get their turn in
// time: at most one in five hundred waits for its whole deadline, and none starts over the limit.
func TestDeadlinesAreHardlyReachedWhenStartsBecomeTenTimesSlower(t *testing.T) {
	t.Parallel()
	const seeds = 20
	starts, reached := 0, 0
	for _, slots := range []int{1, 2, 4} {
		for _, cost := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 6 * time.Second} {
			herd := max(60, slots*int(80*time.Second/cost))
			for seed := range uint64(seeds) {
				k := newKubelet(t, seed, Settings{MaxConcurrent: slots, MaxWait: 24 * time.Hour})
				for i := range herd {
					p := k.ofCost(cost)
					if i > herd/2 {
						p.works *= 10
					}
					k.create(time.Duration(i)*100*time.Millisecond, p)
				}
				k.run()
				name := fmt.Sprintf("%d slots, starts of %s, seed %d", slots, cost, seed)
				require.LessOrEqual(t, k.mostAbove, 0, "%s: starts above the limit", name)
				starts += herd
				reached += len(k.deadlines)
			}
		}
	}
	t.Logf("%d deadlines reached of %d starts", reached, starts)
	require.LessOrEqual(t, 500*reached, starts)
}

// The rule that keeps pods from their deadlines costs little: a herd takes hardly longer than its work. A short herd by
// refusal loses the time until kubelet tries again, as nothing is known of its first starts.
func TestAHerdTakesHardlyLongerThanItsWork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pods   int
		cost   time.Duration
		room   float64 // at most, in the waiting room
		atMost float64 // by refusal
	}{
		{pods: 16, cost: 5 * time.Second, room: 1.2, atMost: 2.1}, // two slots, 40 s: the last start and the first round weigh most
		{pods: 100, cost: time.Second, room: 1.15, atMost: 1.42},
		{pods: 100, cost: 4 * time.Second, room: 1.06, atMost: 1.06},
		{pods: 100, cost: 10 * time.Second, room: 1.12, atMost: 1.2},
	} {
		for _, room := range []time.Duration{0, time.Second} {
			atMost := c.atMost
			if room > 0 {
				atMost = c.room
			}
			const seeds = 20
			var took, work time.Duration
			for seed := range uint64(seeds) {
				k := newKubelet(t, seed, Settings{MaxConcurrent: 2, MaxWait: 24 * time.Hour})
				k.room = room
				for i := range c.pods {
					p := k.create(time.Duration(i)*200*time.Millisecond, k.ofCost(c.cost))
					work += p.works
				}
				took += k.run()
				require.Empty(t, k.deadlines)
			}
			ratio := 2 * took.Seconds() / work.Seconds()
			t.Logf("%d pods of %s, room %s: %.3f times their work", c.pods, c.cost, room, ratio)
			assert.LessOrEqual(t, ratio, atMost, "%d pods of %s, room %s", c.pods, c.cost, room)
		}
	}
}

// jam returns a herd of pods that need a database before they are ready. The database waits behind all of them.
func jam(t *testing.T, seed uint64, dependants int, s Settings) (k *kubelet, database *simPod) {
	t.Helper()
	k = newKubelet(t, seed, s)
	database = &simPod{works: 3 * time.Second}
	for i := range dependants {
		k.create(time.Duration(i)*100*time.Millisecond, &simPod{works: k.between(500*time.Millisecond, 2*time.Second), needs: database})
	}
	k.create(time.Duration(dependants)*100*time.Millisecond+2*time.Second, database)
	return k, database
}

func TestAJamIsLentSlotsUntilItDissolves(t *testing.T) {
	t.Parallel()
	for _, dependants := range []int{2, 10, 40} {
		for seed := range uint64(20) {
			k, _ := jam(t, seed, dependants, Settings{MaxConcurrent: 2, NoProgressAfter: 10 * time.Second})
			took := k.run()
			if seed == 0 {
				t.Logf("%d dependants: %s, %v", dependants, took.Round(time.Second), k.admitted)
			}
			require.Less(t, took, 85*time.Second, "%d dependants, seed %d", dependants, seed)
			require.Zero(t, k.admitted[reasons.MaxWait], "loans admit the pods, not MaxWait")
			require.Empty(t, k.deadlines)
			require.Positive(t, k.admitted[reasons.SlotLent])
			require.Zero(t, k.l.slots.loan, "nothing stays lent")
		}
	}
}

func TestWithoutLoansAJamLastsUntilItsStartsAreStuck(t *testing.T) {
	t.Parallel()
	k, database := jam(t, 1, 10, Settings{MaxConcurrent: 2, NoProgressAfter: -1})
	k.run()
	require.Zero(t, k.admitted[reasons.SlotLent])
	require.Greater(t, database.began.Sub(t0), Settings{}.WithDefaults().StartTimeout/2)
}
