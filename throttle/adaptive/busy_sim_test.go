//go:build sim

package adaptive_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/internal/nodesim"
)

// Other work keeps most of the node busy. Some of the herds have pods that cannot be up in
// time even if they start one at a time; more are killed with the loop. The bounds are what
// was found. More than two starts for each core are let in only where that is all that are
// left, and kills nobody.
func TestHowManyStartOnABusyNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const herds, fiveMinutes = 60, 300 // what has not started by then is left
		perCore, killed, killedAlone, flooded := []float64{}, [2]int{}, 0, 0
		for seed := range uint64(herds) {
			s := nodesim.Busy(seed)
			table := &costs.Table{}
			for run := range killed {
				r, most := learnedRun(s, table, fiveMinutes), 0
				for _, m := range r.Measured {
					most = max(most, m.Slots)
				}
				perCore = append(perCore, float64(most)/float64(s.Cores))
				if r.Kills > 0 {
					killed[run]++
				}
				if most > 2*s.Cores && r.Kills > 0 {
					flooded++
				}
			}
			if pacedRun(s, throttle.Settings{MaxConcurrent: 1}, fiveMinutes).Kills > 0 {
				killedAlone++
			}
		}
		slices.Sort(perCore)
		t.Logf("%d herds, with a kill the first time and the second: %d, %d one at a time; most starts at a time for each core: 50 %% %.2f, 90 %% %.2f, all %.2f",
			herds, killed, killedAlone, perCore[herds], perCore[2*herds*9/10], perCore[2*herds-1])
		assert.LessOrEqual(t, perCore[2*herds-1], 3.0)
		assert.Zero(t, flooded, "herds with a kill and more than two starts at a time for each core")
		assert.LessOrEqual(t, killed[0], 13)
		assert.LessOrEqual(t, killed[1], 8)
	})
}
