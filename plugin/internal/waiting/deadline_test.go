package waiting

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

func TestAWaitThatEndsIsNotAdmittedOverTheLimit(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.longest(time.Minute)
		holder := n.occupy("holder")
		p := n.pod("expired").runs()
		c := p.makes("app")
		n.longest(time.Hour)
		hook := c.hookAsks()
		arrived := p.view().Arrived
		n.passes(n.o.Gate.Timeout - 500*time.Millisecond - time.Second)
		require.False(t, hook.over())
		n.passes(time.Second)
		assert.Equal(t, gate.Verdict{Reason: reasons.GateExpired}, hook.result(), "it is told before its deadline")
		_, starting := n.names()
		assert.Equal(t, []string{"holder"}, starting)
		assert.Equal(t, throttle.Waiting, p.view().State, "the pod keeps its place")
		assert.Equal(t, map[string]float64{"": 1}, n.counted("gate_expired_total"))
		assert.EqualValues(t, 1, n.Gate.Expired())

		c.isRemoved()
		holder.getsReady()
		p.starts("app")
		assert.Equal(t, arrived, p.view().Arrived)
	}, gateTimeout(100*time.Second))
}

// A clock that is set back between CreateContainer and the hook moves the deadline of the hook away.
func TestAHookWaitsNoLongerThanTheGateAllowsIfTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.longest(time.Minute)
		n.occupy("holder")
		p := n.pod("p").runs()
		c := p.makes("app")
		n.longest(time.Hour)
		_, h, _, _, err := wire.ParseArgv(c.hook.Args[1:])
		require.NoError(t, err)
		h.Deadline = h.Deadline.Add(time.Hour)
		hook := n.asks(h)
		n.passes(n.o.Gate.Timeout)
		assert.Equal(t, gate.Verdict{Reason: reasons.GateExpired}, hook.result())
		for _, told := range hook.told() {
			assert.False(t, told.leaveAt.After(time.Now()), "without a daemon, too, it leaves in time")
		}
	}, gateTimeout(100*time.Second))
}

func TestAPodWaitsAtMostATenthOfItsDeadline(t *testing.T) {
	t.Parallel()
	const tenth = 45 * time.Second
	hasty := func(pod *podwatch.Pod) { pod.ActiveDeadline = 10 * tenth }
	for name, p := range map[string]func(n *node) *pod{
		"known when it joins": func(n *node) *pod { return n.pod("hasty", hasty) },
		"known later": func(n *node) *pod {
			p := n.pod("hasty").runs()
			p.changes(hasty)
			return p
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onNode(t, func(t *testing.T, n *node) {
				n.occupy("holder")
				hook := p(n).runs().waits("app")
				n.passes(tenth - time.Second)
				require.False(t, hook.over())
				n.passes(time.Second)
				assert.Equal(t, gate.Verdict{Go: true, Reason: reasons.MaxWait}, hook.result())
			})
		})
	}
}
