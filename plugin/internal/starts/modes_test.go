package starts

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

const (
	shadowMode = "spec: {mode: Shadow}"
	offMode    = `spec: {mode: Disabled}`
)

func TestWhereNoPodIsHeldNoneIsRefused(t *testing.T) {
	t.Parallel()
	for config, waits := range map[string]int{shadowMode: 8, offMode: 0} {
		onNode(t, func(t *testing.T, n *node) {
			n.occupies("holder")
			limits := oneSlot
			if config == offMode {
				limits = throttle.Settings{}
			}
			n.configured(t, config, limits)
			for shut := range 2 { // then the node is shut down
				n.SetShutdown(shut > 0)
				for i := range 4 {
					n.pod(fmt.Sprint(shut, i)).runs().starts("app")
				}
			}
			waiting, _ := n.names()
			assert.Len(t, waiting, waits, config)
		})
	}
}

// Pods that wait when the mode becomes Shadow start. They count as starts under way when the mode is Enforce again.
func TestTheModeChangesUnderWay(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		holder := n.occupies("holder")
		a, b := n.pod("a").runs(), n.pod("b").runs()
		ticket := a.waits("app")
		state, changed := n.endsNow()
		assert.Zero(t, state)
		n.configured(t, shadowMode, oneSlot)
		assert.True(t, closed(changed))
		state, changed = n.endsNow()
		assert.Equal(t, Ends{HoldsNone: observe.Shadow}, state, "its hook is told to go")
		ticket.StartNotHeld(time.Now())
		ticket.StartNotHeld(time.Now()) // for the hook of another container
		a.begins("app")
		b.starts("app")
		waiting, _ := n.names()
		assert.Equal(t, []string{"a", "b"}, waiting)
		assert.Equal(t, map[string]float64{"Shadow": 2}, n.counted("pod_pacemaker_unpaced_total"))

		n.configured(t, "spec: {}", oneSlot)
		assert.True(t, closed(changed))
		state, _ = n.endsNow()
		assert.Zero(t, state)
		waiting, starting := n.names()
		assert.Empty(t, waiting)
		assert.ElementsMatch(t, []string{"holder", "a", "b"}, starting)
		n.passes(0)
		assert.Equal(t, map[string]float64{"Shadow": 2}, n.counted("pod_pacemaker_unpaced_total"), "each start counts once")
		last := n.pod("last").runs()
		last.waits("app")
		for _, p := range []*testPod{holder, a, b} {
			last.is(throttle.Waiting, reasons.Concurrency)
			p.getsReady()
			p.is(throttle.Started, reasons.Ready)
		}
		last.is(throttle.Starting, reasons.WithinLimits)
	})
}

// Right after a restart of the daemon, no pod is admitted in its turn until the hooks are back.
func TestOffHoldsNoPodWhileAdmissionsAreFrozen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, func(o *Options) { o.Timing.RoomReturns = time.Minute })
		n.configured(t, offMode, throttle.Settings{})
		n.Synchronize(nil, nil)
		n.Freeze()
		p := n.pod("p").runs()
		p.starts("app")
		n.passes(0)
		assert.Equal(t, map[string]float64{"Disabled": 1}, n.counted("pod_pacemaker_unpaced_total"))
		p.is(throttle.Starting, reasons.Exempt)
	})
}

// Starts that continued in the mode Shadow are not admitted by the limits that the mode Disabled lifts.
func TestFromShadowToOffAStartCountsOnce(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.configured(t, shadowMode, oneSlot)
		n.occupies("holder")
		a := n.pod("a").runs()
		a.starts("app")
		n.passes(0)
		n.configured(t, offMode, throttle.Settings{})
		n.passes(0)
		a.is(throttle.Starting, reasons.Adopted)
		assert.Equal(t, map[string]float64{"Shadow": 1}, n.counted("pod_pacemaker_unpaced_total"))
		n.pod("b").runs().starts("app")
		n.passes(0)
		assert.Equal(t, map[string]float64{"Shadow": 1, "Disabled": 1}, n.counted("pod_pacemaker_unpaced_total"))
	})
}
