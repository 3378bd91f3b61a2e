//go:build sim

package throttle

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
)

// measures feeds the limiter four times a second. It gives the values of a node with this many cores over the last
// two seconds, where every start keeps one core busy.
func (k *kubelet) measures(cores int) {
	const every, window = 250 * time.Millisecond, 2 * time.Second
	var cpu, pressure []float64
	var measure func()
	measure = func() {
		load := float64(k.l.slots.taken()) / float64(cores)
		cpu, pressure = append(cpu, min(1, load)), append(pressure, max(0, min(1, load-1)))
		if over := len(cpu) - int(window/every); over > 0 {
			cpu, pressure = cpu[over:], pressure[over:]
		}
		reading := func(shares []float64) Reading {
			sum := 0.0
			for _, share := range shares {
				sum += share
			}
			return Reading{Value: 100 * sum / float64(len(shares)), From: k.now.Add(-window), To: k.now}
		}
		k.l.Observe(k.now, Signals{SignalCPU: reading(cpu), SignalCPUPressure: reading(pressure)})
		if k.left > 0 {
			k.after(every, measure)
		}
	}
	measure()
}

// Starts become ten times slower midway, with more than 25 seconds of work left. Also with a limit that is found,
// hardly any pod reaches its deadline. (With less work left, all pods get a reservation, by design, and the last ones
// wait in vain.)
func TestDeadlinesAreHardlyReachedWithAdaptive(t *testing.T) {
	t.Parallel()
	starts, reached, expired := 0, 0, 0
	for _, cores := range []int{1, 2, 4} {
		for _, cost := range []time.Duration{time.Second, 4 * time.Second} {
			herd := max(60, 2*cores*int(80*time.Second/cost)) // 80 s of work or more: the limit found is not quite twice the cores
			for seed := range uint64(10) {
				k := newKubelet(t, seed, Settings{Adaptive: &adaptive.Settings{Cores: cores}, MaxWait: 24 * time.Hour})
				for i := range herd {
					p := k.ofCost(cost)
					if i > herd/2 {
						p.works *= 10
					}
					k.create(time.Duration(i)*100*time.Millisecond/time.Duration(2*cores), p)
				}
				k.measures(cores)
				k.run()
				name := fmt.Sprintf("%d cores, starts of %s, seed %d", cores, cost, seed)
				if len(k.deadlines) > 0 {
					t.Logf("%s: %d deadlines of %d starts", name, len(k.deadlines), herd)
				}
				starts, reached, expired = starts+herd, reached+len(k.deadlines), expired+k.expired
			}
		}
	}
	t.Logf("%d deadlines reached of %d starts, %d refused", reached, starts, expired)
	require.LessOrEqual(t, 100*reached, starts)
}
