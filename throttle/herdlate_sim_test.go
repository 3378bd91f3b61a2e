//go:build sim

package throttle

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// After a reboot, all pods have a sandbox before the limiter is asked. kubelet backs off from a refused container, so
// the slots stay empty if too few pods wait in the gate.
func TestAHerdThatRanBeforeTakesHardlyLongerThanItsWork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		slots, pods int
		cost        time.Duration
		median      float64 // at most
	}{
		{slots: 1, pods: 16, cost: 5 * time.Second, median: 1.05},
		{slots: 2, pods: 40, cost: 5 * time.Second, median: 1.05},
		{slots: 2, pods: 20, cost: 20 * time.Second, median: 1.6}, // nothing may exceed the limit, and kubelet backs off for minutes
		{slots: 4, pods: 16, cost: 20 * time.Second, median: 1.1},
	} {
		const seeds = 60
		var ratios []float64
		reached, expired := 0, 0
		for seed := range uint64(seeds) {
			k := newKubelet(t, seed, Settings{MaxConcurrent: c.slots, MaxWait: 24 * time.Hour, NoProgressAfter: -1})
			work := time.Duration(0)
			for i := range c.pods {
				p := &simPod{
					uid: fmt.Sprintf("%03d", i), works: k.between(c.cost*98/100, c.cost*102/100),
					backOff: &backOff{ended: k.now.Add(-k.between(8*time.Second, 11*time.Second))},
				}
				work += p.works
				k.pods[p.uid] = p
				k.left++
				k.after(k.between(0, 6*time.Second), func() { k.container(p) })
			}
			ratios = append(ratios, float64(c.slots)*k.run().Seconds()/work.Seconds())
			reached, expired = reached+len(k.deadlines), expired+k.expired
			require.LessOrEqual(t, k.mostAbove, 0)
		}
		slices.Sort(ratios)
		t.Logf("%d slots, %d pods of %s: the median is %.2f times their work, the most %.2f; %.2f deadlines, %.2f expired",
			c.slots, c.pods, c.cost, ratios[seeds/2], ratios[seeds-1], float64(reached)/seeds, float64(expired)/seeds)
		require.LessOrEqual(t, ratios[seeds/2], c.median, "%d slots, %d pods of %s", c.slots, c.pods, c.cost)
	}
}
