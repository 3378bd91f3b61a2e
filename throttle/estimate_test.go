package throttle_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// Seeded herds of mixed costs run, with a start that hangs and a second tenant. The median error of the expected wait
// is below 30 %.
func TestExpectedWaitMatchesTheActualWait(t *testing.T) {
	t.Parallel()
	var errors []float64
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 3))
		slots := 2 + rng.IntN(15)
		costs := map[string]time.Duration{"a": time.Duration(2+rng.IntN(10)) * time.Second, "b": time.Duration(2+rng.IntN(10)) * time.Second}
		p := newPlay(t, throttle.Settings{MaxConcurrent: slots}, costs)
		if slots > 2 && seed%2 == 0 {
			p.joinWaiting("hangs-0", throttle.Request{})
		}
		for i := range 60 + rng.IntN(100) {
			p.joinWaiting(fmt.Sprintf("%s-%03d", []string{"a", "b"}[rng.IntN(2)], i), throttle.Request{})
		}
		p.pass(40 * time.Second)
		expected := map[string]time.Duration{}
		asked := p.now.Sub(epoch)
		require.True(t, p.l.Snapshot(p.now).IntervalObserved)
		for _, v := range p.l.Snapshot(p.now).Waiting {
			expected[v.UID] = v.WaitLeft
		}
		p.pass(20 * time.Minute)
		for name, e := range expected {
			took := p.began[name] - asked
			errors = append(errors, math.Abs(e.Seconds()-took.Seconds())/max(1, took.Seconds()))
		}
	}
	slices.Sort(errors)
	median := errors[len(errors)/2]
	t.Logf("median error %.1f %%, 90 %% below %.1f %%, of %d", 100*median, 100*errors[len(errors)*9/10], len(errors))
	require.Less(t, median, 0.3)
}
