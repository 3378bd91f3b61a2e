package throttle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// After a reboot, kubelet retries a refused container ever more seldom. More of these pods wait in the gate than of others,
// and all get their turn there. With the same quota as for others, the slots stay empty for half of the time.
func TestTheSlotsAreTakenAfterARebootThoughKubeletRetriesSeldom(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		slots, pods int
		start       time.Duration
	}{{2, 60, 5 * time.Second}, {4, 110, 5 * time.Second}, {8, 100, 15 * time.Second}} {
		ideal := c.start * time.Duration(c.pods) / time.Duration(c.slots)
		for seed := range uint64(10) {
			k := newKubelet(t, seed, Settings{MaxConcurrent: c.slots})
			for range c.pods {
				k.create(k.between(0, 3*time.Second), &simPod{works: k.between(c.start*8/10, c.start*12/10), again: true})
			}
			require.Less(t, k.run(), ideal*3/2, "%+v, seed %d", c, seed)
			require.Empty(t, k.deadlines, "%+v, seed %d", c, seed)
		}
	}
}
