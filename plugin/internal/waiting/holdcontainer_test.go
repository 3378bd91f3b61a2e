package waiting

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// makesLate makes the runtime make a container of a pod that may not wait in the gate. It returns how long that took.
func (p *pod) makesLate() (c container, held time.Duration, err error) {
	begin := time.Now()
	c, err = p.create("app")
	return c, time.Since(begin), err
}

func TestAContainerWhoseTurnIsNextIsHeldForAMoment(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		holder := n.occupy("holder")
		p := n.pod("job", restarted("Never")).runs()
		time.AfterFunc(n.o.Hold/2, holder.getsReady)
		c, held, err := p.makesLate()
		require.NoError(t, err)
		assert.Equal(t, n.o.Hold/2, held)
		assert.Nil(t, c.hook)
		assert.Equal(t, reasons.WithinLimits, p.view().Reason)
		_, refused := n.Refusals.Counts()
		assert.Zero(t, refused)
		assert.InDelta(t, held.Seconds(), n.counted("handler_hold_seconds_total")[""], 1e-9)
	}, refuseAt(RefuseContainer))
}

func TestAContainerWhoseTurnDoesNotComeInAHoldIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(n *node)
		held   time.Duration
	}{
		"nothing else":               {func(*node) {}, 200 * time.Millisecond},
		"another is next":            {func(n *node) { n.pod("another").runs().waits("app") }, 0},
		"the handlers were slow":     {func(n *node) { n.Took(time.Now(), time.Hour) }, 0},
		"the runtime waits for 0.2s": {func(n *node) { n.Connected("containerd", "2.4.2", 200*time.Millisecond) }, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onNode(t, func(t *testing.T, n *node) {
				n.occupy("holder")
				c.before(n)
				p := n.pod("job", restarted("Never")).runs()
				_, held, err := p.makesLate()
				require.ErrorIs(t, err, errWaiting)
				assert.Equal(t, c.held, held)
				assert.False(t, p.view().Present, "it no longer waits")
			}, refuseAt(RefuseContainer))
		})
	}
}

// A pod that may wait for hours, or surely for longer than a hold, must not use up the short time that handlers may
// wait in all.
func TestALimitThatHoldsAPodForLongIsNotWaitedForInAHandler(t *testing.T) {
	t.Parallel()
	h, now := aChooser(Options{Hold: time.Second}).hold, time.Unix(1000, 0)
	for until, waits := range map[time.Duration]bool{0: true, time.Second: true, time.Second + 1: false} {
		d := throttle.Decision{Reason: reasons.Rate, Held: throttle.Held{Reason: reasons.Rate, Until: now.Add(until)}}
		assert.Equal(t, waits, h.bars(now, d) == "", until)
	}
	for reason, waits := range map[reasons.Reason]bool{reasons.Concurrency: true, reasons.PolicyStarting: true, reasons.PolicyRunning: false, reasons.Unadmittable: false} {
		assert.Equal(t, waits, h.bars(now, throttle.Decision{Reason: reason}) == "", reason)
	}
}

// The pod watch may not know the pod yet, and then nothing says that its container is started again.
func TestAHandlerIsHeldForAMomentUntilThePodIsKnown(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		n.occupy("holder")
		begin := time.Now()
		_, err := n.stranger("unknown").runs().create("app")
		require.ErrorIs(t, err, errWaiting)
		assert.GreaterOrEqual(t, time.Since(begin), n.o.Hold)
	}, refuseAt(RefuseContainer))
}
