//go:build sim

package adaptive_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/internal/nodesim"
)

// loading gives a kind that loads its program for some seconds from a disk for itself, waits and then burns CPU. A
// probe kills it after so many times what it takes alone; 0: none does.
func loading(count int, load, wait, cpu, stretch float64) nodesim.Kind {
	k := nodesim.Kind{Name: "loader", Count: count, LoadSeconds: load, Wait: wait, CPUSeconds: cpu}
	if stretch > 0 {
		k.Liveness, k.Patience = true, max(20, stretch*(load+wait+cpu))
	}
	return k
}

// Nearly every start after a reboot moves some megabytes, then it waits for something else. It is no reader for all
// that time: a herd of such starts takes hardly longer with what was learned than without.
func TestWhatWasLearnedDoesNotHoldStartsThatLoadAndThenWait(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		load, wait, cpu float64
		cores           int
		stretch         float64
		atMost          float64 // by the time of the first, and of a node without a pod watch
	}{
		{load: 0.1, wait: 30, cpu: 2, cores: 2, atMost: 1.02},
		{load: 0.3, wait: 30, cpu: 2, cores: 4, atMost: 1.02},
		{load: 0.3, wait: 30, cpu: 2, cores: 4, stretch: 4, atMost: 1.02},
		{load: 0.1, wait: 30, cpu: 2, cores: 4, stretch: 2, atMost: 1.25},
		{load: 0.3, wait: 30, cpu: 2, cores: 8, stretch: 4, atMost: 1.05},
		{load: 1, wait: 10, cpu: 2, cores: 4, stretch: 4, atMost: 1.05},
		{load: 1, wait: 10, cpu: 0.3, cores: 4, stretch: 4, atMost: 1.1},
		{load: 2, wait: 30, cpu: 2, cores: 4, stretch: 4, atMost: 1.05},
	} {
		t.Run(fmt.Sprintf("%d cores, load %v s, wait %v s, %v CPU-s, %v times", c.cores, c.load, c.wait, c.cpu, c.stretch), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := nodesim.Scenario{Cores: c.cores, DiskStreams: float64(c.cores), Seed: 7, Herd: []nodesim.Kind{loading(12*c.cores, c.load, c.wait, c.cpu, c.stretch)}}
				const most = 1500
				table := &costs.Table{}
				unwatched, first, again := adaptiveRun(s, most), learnedRun(s, table, most), learnedRun(s, table, most)
				t.Logf("%.1f s unwatched, %.1f s first, %.1f s again", unwatched.Makespan, first.Makespan, again.Makespan)
				assert.LessOrEqual(t, again.Makespan, c.atMost*min(unwatched.Makespan, first.Makespan))
				assert.Zero(t, again.Kills)
			})
		})
	}
}

// A slow disk is the bottleneck of a herd that reads for minutes in all. What was learned of its starts keeps most of
// them from it, so that the probes kill none.
func TestReadersOfASlowDiskAreNotTakenForStartsThatWait(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cores        int
		io, patience float64
	}{{8, 1, 60}, {8, 4, 240}, {16, 1, 60}, {16, 2, 120}, {16, 4, 60}} {
		t.Run(fmt.Sprintf("%d cores, %v s of the disk, a probe of %v s", c.cores, c.io, c.patience), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := nodesim.Scenario{Cores: c.cores, DiskStreams: 1, Shuffled: true, Seed: 7, Herd: []nodesim.Kind{{
					Name: "reader", Count: 10 * c.cores, CPUSeconds: 1, IOSeconds: c.io, Liveness: true, Patience: c.patience,
				}}}
				const most = 3000
				table := &costs.Table{}
				first, again := learnedRun(s, table, most), learnedRun(s, table, most)
				t.Logf("%.1f s and %d kills first, %.1f s again", first.Makespan, first.Kills, again.Makespan)
				assert.Zero(t, again.Kills)
				assert.LessOrEqual(t, again.Makespan, 1.1*10*float64(c.cores)*c.io)
			})
		})
	}
}

// The same in a herd with pods that burn CPU from their begin.
func TestWhatWasLearnedDoesNotHoldAMixedHerdThatLoads(t *testing.T) {
	t.Parallel()
	for _, cores := range []int{4, 16} {
		for _, load := range []float64{0.1, 1} {
			t.Run(fmt.Sprintf("%d cores, load %v s", cores, load), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := nodesim.Scenario{Cores: cores, DiskStreams: float64(cores) / 2, Seed: 7, Shuffled: true, Herd: []nodesim.Kind{
						{Name: "burner", Count: 4 * cores, CPUSeconds: 8, Liveness: true, Patience: 60},
						loading(4*cores, load, 15, 0.3, 4), loading(4*cores, load, 30, 1, 4),
					}}
					const most = 1500
					table := &costs.Table{}
					unwatched, first, again := adaptiveRun(s, most), learnedRun(s, table, most), learnedRun(s, table, most)
					t.Logf("%.1f s unwatched, %.1f s first, %.1f s again", unwatched.Makespan, first.Makespan, again.Makespan)
					assert.LessOrEqual(t, again.Makespan, 1.1*min(unwatched.Makespan, first.Makespan))
					assert.Zero(t, again.Kills)
				})
			})
		}
	}
}
