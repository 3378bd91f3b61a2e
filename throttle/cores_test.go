package throttle

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// peak has a start that is expected to keep so many cores busy.
func peak(cores float64) *costs.Cost { return &costs.Cost{Count: 3, Peak: costs.Figure{Mean: cores}} }

// attendKnown joins with what is known of the start, and stands there for the ticket.
func (n *node) attendKnown(uid string, cost *costs.Cost) {
	n.l.Join(n.now, Request{UID: uid, Name: "ns/" + uid, Expected: Expected{Cost: cost}}).Wait(n.now)
}

func TestCoresAreCountedInPlaceOfPods(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 2, CountCores: true})
	n.attend("unknown")
	for i := range 5 {
		n.attendKnown(fmt.Sprint("light-", i), peak(0.25))
	}
	n.requireStarting("unknown", "light-0", "light-1", "light-2", "light-3")
	n.requireWaiting("light-4")
	s := n.l.Snapshot(n.now)
	require.Equal(t, Held{Reason: reasons.Concurrency, Measured: 5, Threshold: 5}, s.Held)

	n.end("light-0", reasons.Ready)
	n.requireWaiting()
	n.end("unknown", reasons.Ready)
	require.Equal(t, 5, n.l.Snapshot(n.now).Limit, "four that are light, and one that nobody knows")
}

func TestAStartThatExceedsTheCoresStartsAlone(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 2, CountCores: true})
	n.attendKnown("light", peak(0.5))
	n.attendKnown("great", peak(3))
	n.attendKnown("behind", peak(0.5))
	n.requireStarting("light")
	n.requireWaiting("great", "behind")
	n.end("light", reasons.Ready)
	n.requireStarting("great")
	n.end("great", reasons.Ready)
	n.requireStarting("behind")
}

func TestWhatOnlyWaitsCountsALittle(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1, CountCores: true})
	for i := range 25 {
		n.attendKnown(fmt.Sprint(i), peak(0))
	}
	require.Len(t, n.l.Snapshot(n.now).Starting, 20)
}

func TestOfCoresAndTheAdaptiveLimitTheLessCounts(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 2, CountCores: true, Adaptive: &adaptive.Settings{Cores: 8}, StartTimeout: time.Hour})
	n.attend("a", "b", "c")
	n.requireStarting("a", "b")

	n = newNode(t, Settings{MaxConcurrent: 50, CountCores: true, Adaptive: &adaptive.Settings{Cores: 1, Max: 1}, StartTimeout: time.Hour})
	n.attend("a", "b", "c")
	n.requireStarting("a")
}

// Whatever comes and goes, no more cores are given than there are, but to one that starts alone; and the next is held
// only where it does not fit.
func TestCoresAreNeverExceededNorLeftIdle(t *testing.T) {
	t.Parallel()
	const most, rounding = 3, 1e-6
	rng := rand.New(rand.NewPCG(1, 2))
	n := newNode(t, Settings{MaxConcurrent: most, CountCores: true, StartTimeout: 24 * time.Hour, MaxWait: 24 * time.Hour, NoProgressAfter: -1})
	known := map[string]float64{}
	for i := range 2000 {
		if s := n.l.Snapshot(n.now); len(s.Starting) > 0 && rng.IntN(2) == 0 {
			n.end(s.Starting[rng.IntN(len(s.Starting))].UID, reasons.Ready)
		} else {
			uid := fmt.Sprint(i)
			known[uid] = 0.05 + 2*rng.Float64()
			if rng.IntN(20) == 0 {
				known[uid] = 4
			}
			n.attendKnown(uid, peak(known[uid]))
		}
		n.pass(time.Second)
		s, sum := n.l.Snapshot(n.now), 0.0
		for _, v := range s.Starting {
			sum += known[v.UID]
		}
		if len(s.Starting) > 1 {
			require.LessOrEqual(t, sum, most+rounding)
		}
		if len(s.Waiting) > 0 {
			require.NotEmpty(t, s.Starting)
			require.Greater(t, sum+known[s.Waiting[0].UID], most-rounding)
		}
	}
}
