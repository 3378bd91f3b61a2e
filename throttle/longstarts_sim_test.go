//go:build sim

package throttle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// herdOf returns how long each pod of a herd works, and its kind.
type herdOf func(k *kubelet, i, pods int, cost time.Duration) (works time.Duration, kind string)

// herds are herds in which no place in the gate may run out. cost is what the shortest of their starts costs.
var herds = map[string]herdOf{
	"equal": func(k *kubelet, _, _ int, cost time.Duration) (time.Duration, string) {
		return k.between(cost*8/10, cost*12/10), "a"
	},
	"mixed": func(k *kubelet, i, _ int, cost time.Duration) (time.Duration, string) {
		if i%4 == 3 {
			return k.between(cost*8, cost*12), "b"
		}
		return k.between(cost*8/10, cost*12/10), "a"
	},
	"mixed, of unknown kinds": func(k *kubelet, i, _ int, cost time.Duration) (time.Duration, string) {
		if i%4 == 3 {
			return k.between(cost*8, cost*12), ""
		}
		return k.between(cost*8/10, cost*12/10), ""
	},
	"mixed, of one kind": func(k *kubelet, _, _ int, cost time.Duration) (time.Duration, string) {
		if k.between(0, 7*time.Second) < 2*time.Second {
			return k.between(cost*32, cost*40), "a"
		}
		return k.between(cost*8/10, cost*12/10), "a"
	},
	"of a new kind midway": func(k *kubelet, i, pods int, cost time.Duration) (time.Duration, string) {
		if i >= pods/2 {
			return k.between(cost*8, cost*12), "b"
		}
		return k.between(cost*8/10, cost*12/10), "a"
	},
	"ten times slower midway": func(k *kubelet, i, pods int, cost time.Duration) (time.Duration, string) {
		if i >= pods/2 {
			return k.between(cost*8, cost*12), "a"
		}
		return k.between(cost*8/10, cost*12/10), "a"
	},
}

// times is how many times as long the longest starts of a herd take.
var times = map[string]float64{
	"equal": 1, "mixed": 10, "mixed, of unknown kinds": 10, "mixed, of one kind": 40, "of a new kind midway": 10, "ten times slower midway": 10,
}

// A place in the gate is a promise: of 1,000 at most one runs out, in herds whose starts take from half a second to ten
// minutes. In a herd in which none does, no slot is empty for longer than kubelet takes to try a pod again.
func TestOfAThousandPlacesInTheGateHardlyOneRunsOut(t *testing.T) {
	t.Parallel()
	for _, room := range []bool{false, true} {
		places, expired := 0, 0
		for _, cost := range []time.Duration{500 * time.Millisecond, 2 * time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 10 * time.Minute} {
			for name, of := range herds {
				if times[name]*cost.Minutes() > 10 {
					continue
				}
				p := longStarts(t, room, name, cost, of)
				places, expired = places+p.places, expired+p.expired
			}
		}
		t.Logf("room %v: %d of %d places ran out", room, expired, places)
		require.Greater(t, places, 5000)
		require.LessOrEqual(t, 1000*expired, places, "room %v", room)
	}
}

// longStarts plays a herd with 1, 2 and 8 slots. It returns the sums of what was counted.
func longStarts(t *testing.T, room bool, name string, cost time.Duration, of herdOf) (sum kubelet) {
	t.Helper()
	const retry = 15*time.Second + 2*time.Second // and the pod's setup
	for _, slots := range []int{1, 2, 8} {
		seeds := uint64(12)
		if cost > 5*time.Second {
			seeds = 4 // hardly a place is promised
		}
		for seed := range seeds {
			k := newKubelet(t, seed, Settings{MaxConcurrent: slots, MaxWait: 1000 * time.Hour, StartTimeout: time.Hour, NoProgressAfter: -1})
			most := retry
			if room {
				k.room = max(time.Second, cost/5) // less often than a real one, which takes a simulation too long
				most = k.room + 2*time.Second
			}
			pods := max(40, slots*10)
			for i := range pods {
				works, kind := of(k, i, pods, cost)
				k.create(time.Duration(i)*50*time.Millisecond, &simPod{works: works, kind: kind})
			}
			k.run()
			require.LessOrEqual(t, k.mostAbove, 0, "%s of %s: starts above the limit", name, cost)
			if k.expired == 0 {
				require.LessOrEqual(t, k.empty, most, "%s of %s, %d slots, seed %d, room %v: a slot was empty", name, cost, slots, seed, room)
			}
			sum.places, sum.expired = sum.places+k.places, sum.expired+k.expired
		}
	}
	return sum
}

// Starts of five minutes, and half take longer than startTimeout, in a herd that takes far longer than maxWait. What
// ends first: from maxWait on, one start at a time is over the limit; a start that outlasts startTimeout gives up its slot,
// and goes on. No place in the gate runs out. With a longer maxWait and startTimeout, the limit holds.
func TestFortyStartsOfFiveMinutes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		maxWait, startTimeout time.Duration
		most                  int // processes at a time
	}{
		{4 * time.Minute, 5 * time.Minute, 5},
		{4 * time.Minute, 15 * time.Minute, 3},
		{24 * time.Hour, 15 * time.Minute, 2},
	} {
		k := newKubelet(t, 1, Settings{MaxConcurrent: 2, MaxWait: c.maxWait, StartTimeout: c.startTimeout, NoProgressAfter: -1})
		for i := range 40 {
			k.create(time.Duration(i)*50*time.Millisecond, &simPod{works: k.between(270*time.Second, 330*time.Second), kind: "a"})
		}
		took, most := k.run(), 0
		for _, p := range k.pods {
			n := 0
			for _, o := range k.pods {
				n += oneIf(!o.began.After(p.began) && o.began.Add(o.works).After(p.began))
			}
			most = max(most, n)
		}
		t.Logf("maxWait %s, startTimeout %s: %s, %v, %d processes at a time, %d places ran out", c.maxWait, c.startTimeout, took.Round(time.Second), k.admitted, most, k.expired)
		require.LessOrEqual(t, most, c.most)
		require.Zero(t, k.expired)
	}
}
