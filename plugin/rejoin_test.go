package plugin

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A slot that became free while no daemon ran goes to the first in the queue, not to the hook that happens to ask first.
func TestASlotThatIsFreeAfterARestartGoesToTheFirstInLine(t *testing.T) {
	t.Parallel()
	n := newNode(t, twoAtATimeLate, tuned(func(r *tuning) { r.timing.Rejoin = testTimeout }))
	holders := []*testPod{n.occupy("holder-0"), n.occupy("holder-1")}
	var waiting []*attempt
	for i := range 5 {
		waiting = append(waiting, n.pod(fmt.Sprintf("waits-%d", i)).runs().waitsAtGate("app"))
	}
	n.stopDaemon()
	for _, p := range holders {
		p.getsReady()
	}
	n.startDaemon()
	n.connected()
	for i, a := range waiting {
		a.succeeds()
		for j := i + 2; j < len(waiting); j++ {
			assert.False(t, waiting[j].over(), "%s goes after %s", waiting[j].pod.spec.Name, a.pod.spec.Name)
		}
		if i > 0 {
			waiting[i-1].pod.getsReady()
		}
	}
	n.noHookIsLeft()
}
