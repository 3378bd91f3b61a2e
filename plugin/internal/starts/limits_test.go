package starts

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// No event reports that the rate allows the next start. The loop wakes up by itself.
func TestTheLoopAdmitsEachStartWhenTheRateAllowsIt(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		const every = 300 * time.Millisecond
		n.configured(t, "spec: {}", throttle.Settings{FillEvery: every, Burst: 1})
		first, second, third := n.pod("first").runs(), n.pod("second").runs(), n.pod("third").runs()
		go func() { assert.NoError(t, n.Run(t.Context())) }()
		first.starts("app")
		last := first.view().Admitted
		tickets := []Ticket{second.waits("app"), third.waits("app")}
		for i, p := range []*testPod{second, third} {
			select {
			case <-tickets[i].Decided():
			case <-time.After(time.Minute):
				require.FailNow(t, "the loop does not admit "+p.uid)
			}
			p.is(throttle.Starting, reasons.WithinLimits)
			admitted := p.view().Admitted
			assert.GreaterOrEqual(t, admitted.Sub(last), every, p.uid)
			assert.Less(t, admitted.Sub(last), every+2*restFor, p.uid)
			last = admitted
		}
	})
}
