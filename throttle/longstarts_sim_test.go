//go:build sim

package throttle

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// herdOf returns how long each pod of a herd works, and its kind.
type herdOf func(k *kubelet, i, pods int, cost time.Duration) (works time.Duration, kind string)

// herds are those of which no place in the gate may run out. A cost is that of the shortest of their starts.
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

// A place in the gate is a promise: of 1,000 at most one runs out, in herds whose starts take from half a second to ten
// minutes. No slot is empty for longer because of it than kubelet takes to try again.
func TestOfAThousandPlacesInTheGateHardlyOneRunsOut(t *testing.T) {
	t.Parallel()
	const retry = 15*time.Second + 2*time.Second // and the pod's setup
	for _, room := range []bool{false, true} {
		places, expired := 0, 0
		for _, cost := range []time.Duration{500 * time.Millisecond, 2 * time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 10 * time.Minute} {
			for _, name := range []string{"equal", "mixed", "mixed, of unknown kinds", "of a new kind midway", "ten times slower midway"} {
				if name != "equal" && cost > time.Minute {
					continue // the longest of its starts would take more than ten minutes
				}
				pl, ex, longest, most := 0, 0, time.Duration(0), 0.0
				for _, slots := range []int{1, 2, 8} {
					var took, work time.Duration
					for seed := range uint64(4) {
						k := newKubelet(t, seed, Settings{MaxConcurrent: slots, MaxWait: 1000 * time.Hour, StartTimeout: time.Hour, NoProgressAfter: -1})
						if room {
							k.room = max(time.Second, cost/5)
						}
						pods := max(40, slots*10)
						for i := range pods {
							works, kind := herds[name](k, i, pods, cost)
							k.create(time.Duration(i)*50*time.Millisecond, &simPod{works: works, kind: kind})
							work += works / time.Duration(slots)
						}
						took += k.run()
						require.LessOrEqual(t, k.mostAbove, 0, "%s", name)
						longest = max(longest, k.empty)
						pl, ex = pl+k.places, ex+k.expired
					}
					most = max(most, took.Seconds()/work.Seconds())
				}
				fmt.Printf("room %v, %s, %s: %d of %d ran out; a slot was empty for %s, took at most %.2f\n", room, name, cost, ex, pl, longest, most)
				places, expired = places+pl, expired+ex
			}
		}
		t.Logf("room %v: %d of %d places ran out", room, expired, places)
	}
	_ = retry
}
