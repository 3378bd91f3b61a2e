package throttle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// holdFor holds all starts from now on.
func (n *node) holdFor(d time.Duration) {
	Pause{For: "ns/agent", Since: n.now, Until: n.now.Add(d)}.Put(n.now, n.l)
}

// Nothing exceeds a Pause: not the queue, no deadline, no loan.
func TestAPauseHoldsEveryPodThatIsNotExempt(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 2, MaxWait: time.Second, NoProgressAfter: time.Second}, "starts")
	n.stall("starts")
	n.holdFor(time.Minute)
	late := n.joinAndWait("a", "b", "c")
	n.pass(59 * time.Second)
	n.requireStarting("starts")
	held := n.join("d").TryStart(n.now)
	require.Equal(t, Held{Reason: reasons.StartAfter, For: "ns/agent", Measured: 1, Threshold: 60, Until: t0.Add(time.Minute)}, held.Held)
	require.Equal(t, 3, held.Ahead)
	require.Equal(t, Decision{Reason: reasons.GateExpired, Held: held.Held, Ahead: 2}, late.DeadlineReached(n.now))
	require.True(t, n.join("exempt").StartExempt(n.now))
	require.True(t, n.l.Snapshot(n.now).Starting[1].Slot, "an exempt pod gets the slot that is free")
	n.end("exempt", reasons.Ready)
	n.requireStarting("starts")
}

func TestPodsStartInTheirOrderWhenAPauseEnds(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]func(n *node){
		"by itself":     func(n *node) { require.Equal(t, t0.Add(time.Minute), n.pass(0)); n.pass(time.Minute) },
		"by the caller": func(n *node) { Pause{}.Put(n.now, n.l) },
	} {
		t.Run(name, func(t *testing.T) {
			n := testNode(t, Settings{MaxConcurrent: 2, MaxWait: time.Hour})
			n.holdFor(time.Minute)
			n.joinAndWait("a", "b", "c")
			n.requireWaiting("a", "b", "c")
			require.Equal(t, time.Minute, n.l.Snapshot(n.now).Waiting[0].WaitLeft.Truncate(time.Minute))
			ends(n)
			n.requireStarting("a", "b")
			n.requireWaiting("c")
		})
	}
}

// A process that could not wait for the end of the Pause would end without a turn.
func TestAReservationOutlivesThePause(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 2, MaxWait: time.Second})
	n.holdFor(time.Minute)
	ticket := n.join("a")
	require.Equal(t, reasons.StartAfter, ticket.Reserve(n.now, time.Minute, RetriedSoon).Reason)
	n.pass(2 * time.Second) // it is overdue
	require.Equal(t, reasons.StartAfter, ticket.Reserve(n.now, 58*time.Second, RetriedSoon).Reason)
	require.True(t, ticket.Reserve(n.now, 59*time.Second, RetriedSoon).Granted)
}

// The adaptive limit must not take pods that a Pause holds for a demand that it could meet.
func TestAPauseLendsNoSlotAndIsNoDemand(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, NoProgressAfter: time.Second}, "hangs")
	n.stall("hangs")
	n.holdFor(time.Minute)
	n.joinAndWait("a")
	n.pass(30 * time.Second)
	n.requireStarting("hangs")
	require.Zero(t, n.l.admission.sample(n.now).Waiting)
	n.pass(30 * time.Second)
	n.requireStarting("hangs", "a")
}
