package plugin

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

func TestALimitThatIsRaisedLetsWaitersGo(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	n.occupy("holder")
	a := n.pod("waits").runs().waitsAtGate("app")
	n.reconfigure(twoAtATime)
	a.succeeds()
	b := n.pod("waits-too").runs().waitsAtGate("app")
	n.reconfigure(noLimit)
	b.succeeds()
}

func TestTheRateLimitAdmitsOneStartAfterTheOther(t *testing.T) {
	t.Parallel()
	n := newNode(t, "spec: {throttleConfig: {rateLimit: {fillFactor: 300ms, burst: 1}}}")
	first := n.pod("first").runs()
	first.startsNow("app")
	second := n.pod("second").runs()
	second.starts("app").succeeds()
	second.becomes(throttle.Starting, reasons.WithinLimits)
	between := n.view(second.uid).Admitted.Sub(n.view(first.uid).Admitted)
	assert.GreaterOrEqual(t, between.Milliseconds(), int64(299))
}
