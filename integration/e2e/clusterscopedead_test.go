//go:build e2e && full

package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A daemon is killed while it holds every slot: the other daemons get the slots after the Leases
// expire, not before.
func TestSlotsOfADeadNodeExpire(t *testing.T) {
	f := newFleet(t, 3, 2)
	dead := f.nodes[0]
	dead.run("never-ready-0", -1)
	dead.run("never-ready-1", -1)
	holdsAll := func() bool { return slices.Equal(f.holders(), []string{dead.name, dead.name}) }
	eventually(t, "one node holds all slots", holdsAll)
	for _, n := range f.nodes[1:] {
		n.run(n.name+"-0", 500*time.Millisecond)
		n.run(n.name+"-1", 500*time.Millisecond)
	}
	f.mu.Lock()
	f.uncount[dead.name], f.starting, f.order = true, 0, nil
	f.mu.Unlock()
	require.NoError(t, dead.Kill(t.Context()))
	killed := time.Now()
	eventually(t, "the other nodes have started their pods", func() bool {
		require.LessOrEqual(t, len(f.holders()), 2)
		began, _ := f.began()
		if holdsAll() {
			require.Empty(t, began, "pods that started without a slot")
		}
		return len(began) == 4
	})
	_, most := f.began()
	assert.LessOrEqual(t, most, 2)
	figure(t, "%s after the kill the pods of the other nodes had started", time.Since(killed).Round(time.Second))
	eventually(t, "all slots are free", func() bool { return len(f.holders()) == 0 })
}
