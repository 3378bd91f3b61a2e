//go:build sim

package adaptive_test

import (
	"encoding/json"
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/internal/nodesim"
)

var (
	fewHerds  = flag.Int("herds", 60, "")
	fromHerd  = flag.Int("from", 0, "")
	firstOnly = flag.Bool("first", false, "")
	bad       = flag.Float64("bad", 1.3, "")
)

func continueWith(all ...*tally) {
	for _, y := range all {
		y.ratios = append(y.ratios, 1)
	}
}

type tally struct {
	name   string
	ratios []float64
	killed []uint64
}

func (y *tally) add(t *testing.T, seed uint64, s nodesim.Scenario, r nodesim.Result, best float64) {
	y.ratios = append(y.ratios, r.Makespan/best)
	if r.Kills > 0 {
		y.killed = append(y.killed, seed)
	}
	if r.Kills > 0 || r.Makespan > *bad*best {
		t.Logf("%s %d: %.2f %.1f of %.1f s, %d kills, cores %d streams %.1f shuffled %v: %+v", y.name, seed, r.Makespan/best, r.Makespan, best, r.Kills, s.Cores, s.DiskStreams, s.Shuffled, s.Herd)
	}
}

func (y *tally) tell(t *testing.T) {
	slices.Sort(y.ratios)
	q := func(q float64) float64 { return y.ratios[int(math.Ceil(q*float64(len(y.ratios))))-1] }
	t.Logf("FIGURE %-14s %d herds: 50 %% %.2f, 90 %% %.2f, 95 %% %.3f, 99 %% %.2f, all %.2f; %d with a kill: %v", y.name, len(y.ratios), q(.5), q(.9), q(.95), q(.99), q(1), len(y.killed), y.killed)
}

func learnedRun(s nodesim.Scenario, table *costs.Table) nodesim.Result {
	l := throttle.New(time.Now(), settings(throttle.Settings{Adaptive: &adaptive.Settings{Cores: s.Cores}}))
	return nodesim.Run(s, nodesim.Pacing{Limiter: l, Table: table, StopAfter: 1500, Observe: func(now time.Time, m nodesim.Measured) {
		l.Observe(now, m.Signals(now))
	}})
}

// wrong gives a table of which 15 % of the entries are wrong by a factor of five.
func wrong(t *testing.T, table *costs.Table, seed uint64) *costs.Table {
	data, err := table.Encode(costs.Machine{})
	require.NoError(t, err)
	var f map[string]any
	require.NoError(t, json.Unmarshal(data, &f))
	r := rand.New(rand.NewPCG(seed, 6))
	for _, key := range slices.Sorted(func(yield func(string) bool) {
		for k := range f["costs"].(map[string]any) {
			if !yield(k) {
				return
			}
		}
	}) {
		by := 5.0
		if r.IntN(2) == 0 {
			by = 0.2
		}
		if r.Float64() >= 0.15 {
			continue
		}
		c := f["costs"].(map[string]any)[key].(map[string]any)
		for _, figure := range []string{"cpuSeconds", "aloneSeconds", "idleSeconds", "peakCores", "diskBytes"} {
			c[figure].(map[string]any)["mean"] = by * c[figure].(map[string]any)["mean"].(float64)
		}
	}
	data, err = json.Marshal(f)
	require.NoError(t, err)
	table, err = costs.Decode(data, costs.Machine{})
	require.NoError(t, err)
	return table
}

func TestLearnedFigures(t *testing.T) {
	for _, herds := range streams {
		t.Run(herds.name, func(t *testing.T) {
			t.Parallel()
			known := readSweep(t, herds.name)
			first, second, third := &tally{name: herds.name + " first"}, &tally{name: herds.name + " second"}, &tally{name: herds.name + " wrong"}
			for i := *fromHerd; i < min(*fromHerd+*fewHerds, herds.herds); i++ {
				synctest.Test(t, func(t *testing.T) {
					seed := herds.first + uint64(i)
					s := herds.herd(seed)
					table := &costs.Table{}
					first.add(t, seed, s, learnedRun(s, table), known.Makespan[i])
					off := wrong(t, table, seed)
					if *firstOnly {
						continueWith(second, third)
						return
					}
					second.add(t, seed, s, learnedRun(s, table), known.Makespan[i])
					third.add(t, seed, s, learnedRun(s, off), known.Makespan[i])
				})
			}
			first.tell(t)
			second.tell(t)
			third.tell(t)
		})
	}
	t.Run("busy", func(t *testing.T) {
		t.Parallel()
		most, killed := [2]float64{}, [2]int{}
		for seed := range uint64(*fewHerds) {
			synctest.Test(t, func(t *testing.T) {
				s := nodesim.Busy(seed)
				table := &costs.Table{}
				for i := range 2 {
					l := throttle.New(time.Now(), settings(throttle.Settings{Adaptive: &adaptive.Settings{Cores: s.Cores}}))
					r := nodesim.Run(s, nodesim.Pacing{Limiter: l, Table: table, StopAfter: 300, Observe: func(now time.Time, m nodesim.Measured) { l.Observe(now, m.Signals(now)) }})
					for _, m := range r.Measured {
						most[i] = max(most[i], float64(m.Slots)/float64(s.Cores))
					}
					if r.Kills > 0 {
						killed[i]++
					}
				}
			})
		}
		t.Logf("FIGURE busy %d herds: first %d with a kill, most %.2f per core; second %d, %.2f", *fewHerds, killed[0], most[0], killed[1], most[1])
	})
}
