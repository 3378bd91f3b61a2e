package throttle

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
)

// While the node has room, the adaptive limit may rise soon. As many pods get a reservation as this higher limit
// admits: a refused pod comes back too late to use it. When the node is full, only as many pods get a reservation as
// the limit itself admits in time.
func TestTheRoomForeseesARiseOfTheAdaptiveLimit(t *testing.T) {
	t.Parallel()
	const cores = 4
	n := newNode(t, Settings{Adaptive: &adaptive.Settings{Cores: cores}})
	reserve := func(kind string) (admitted int) {
		for i := range 200 {
			if n.join(fmt.Sprint(kind, i)).Reserve(n.now, 100*time.Second, RetriedSoon).Admitted {
				admitted++
			}
		}
		return admitted
	}
	require.Equal(t, 2*8*cores+1, reserve("early"))

	n = newNode(t, Settings{Adaptive: &adaptive.Settings{Cores: cores}})
	n.joinAndWait("a", "b", "c", "d", "e", "f", "g", "h")
	for range 40 {
		n.pass(250 * time.Millisecond)
		full := Reading{From: n.now.Add(-2 * time.Second), To: n.now}
		var s Signals
		s[SignalCPU], s[SignalCPUPressure] = full, full
		s[SignalCPU].Value, s[SignalCPUPressure].Value = 100, 60
		n.l.Observe(n.now, s)
	}
	require.Less(t, reserve("late"), 2*8*cores+1)

	n = newNode(t, Settings{MaxConcurrent: 3, Adaptive: &adaptive.Settings{Cores: cores}})
	require.Equal(t, 2*3+1, reserve("bounded"))
}
