//go:build sim

package throttle

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A herd has mixed costs, and one start of it hangs. Ten pods of a second tenant come in its midst.
func TestAHerdOfMixedCostsWithAHungStartAndASecondTenant(t *testing.T) {
	t.Parallel()
	const slots, seeds = 4, 40
	var took, work time.Duration
	var waits []time.Duration
	deadlines, starts := 0, 0
	for seed := range uint64(seeds) {
		k := newKubelet(t, seed, Settings{MaxConcurrent: slots})
		k.create(0, &simPod{flow: "a", works: time.Hour})
		var all, second []*simPod
		for i := range 80 {
			p := k.ofCost(k.between(time.Second, 12*time.Second))
			p.flow = "a"
			all = append(all, k.create(time.Duration(i)*100*time.Millisecond, p))
		}
		for i := range 10 {
			p := k.ofCost(4 * time.Second)
			p.flow = "b"
			second = append(second, k.create(30*time.Second+time.Duration(i)*100*time.Millisecond, p))
		}
		k.run()
		last := t0
		for i, p := range append(all, second...) {
			last = later(last, p.ended)
			work += p.works
			if i >= len(all) {
				waits = append(waits, p.began.Sub(t0.Add(30*time.Second)))
			}
		}
		took += last.Sub(t0)
		deadlines += len(k.deadlines)
		starts += len(k.pods)
		require.LessOrEqual(t, k.mostAbove, 1)
	}
	slices.Sort(waits)
	ratio := (slots - 1) * took.Seconds() / work.Seconds()
	t.Logf("%.3f times the work of the slots that do not hang; the second tenant waits %s (median), %s at most; %d of %d starts reach a deadline",
		ratio, waits[len(waits)/2].Round(time.Second), waits[len(waits)-1].Round(time.Second), deadlines, starts)
	require.LessOrEqual(t, ratio, 1.14)
	require.Less(t, waits[len(waits)/2], 35*time.Second)
	require.LessOrEqual(t, 100*deadlines, starts)
}
