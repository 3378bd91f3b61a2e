//go:build sim

package adaptive_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/internal/nodesim"
)

// Other work queues for the CPUs all the time, two tasks for each. Where it gets what starts leave, it does not hold them.
// Where it has their weight, it holds them for up to twice as long as a limit of one start for each core. The bounds
// are what was found.
func TestOtherWorkThatQueuesHardlyHoldsStarts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		share nodesim.Share
		cores int
		most  float64 // by the time at that limit
	}{{"behind", nodesim.Behind, 4, 1}, {"behind", nodesim.Behind, 64, 1}, {"evenly", nodesim.Evenly, 4, 1.7}, {"evenly", nodesim.Evenly, 64, 1.95}} {
		t.Run(fmt.Sprintf("%s, %d cores", c.name, c.cores), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := nodesim.Scenario{
					Cores: c.cores, DiskStreams: float64(c.cores), Seed: 3,
					Running: []nodesim.Kind{{Name: "other", Count: 2 * c.cores, ServeCores: 1, Share: c.share}},
					Herd:    []nodesim.Kind{{Name: "burner", Count: 6 * c.cores, CPUSeconds: 10, Liveness: true, Patience: 60}},
				}
				const most = 1500
				table := &costs.Table{}
				fixed := pacedRun(s, throttle.Settings{MaxConcurrent: c.cores}, most)
				for _, run := range []struct {
					name string
					nodesim.Result
				}{{"unwatched", adaptiveRun(s, most)}, {"first", learnedRun(s, table, most)}, {"again", learnedRun(s, table, most)}} {
					t.Logf("%s: %.1f s, %.2f of a limit of the cores", run.name, run.Makespan, run.Makespan/fixed.Makespan)
					assert.LessOrEqual(t, run.Makespan, c.most*fixed.Makespan, run.name)
					assert.Zero(t, run.Kills, run.name)
				}
			})
		})
	}
}
