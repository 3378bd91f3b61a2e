package throttle

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

func TestConcurrencyLimitIsChangedLive(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 3}, "a", "b", "c", "d", "e")
	n.requireStarting("a", "b", "c")

	n.l.Configure(n.now, Settings{MaxConcurrent: 1})
	n.requireStarting("a", "b", "c")
	n.end("a", reasons.Ready)
	n.end("b", reasons.Ready)
	n.requireStarting("c")
	n.end("c", reasons.Ready)
	n.requireStarting("d")

	n.joinAndWait("f")
	n.l.Configure(n.now, Settings{MaxConcurrent: 2})
	n.requireStarting("d", "e")
	n.l.Configure(n.now, Settings{})
	n.requireStarting("d", "e", "f")
}

func TestRateAdmitsTheBurstThenOnePerFill(t *testing.T) {
	n := testNode(t, Settings{FillEvery: 10 * time.Second, Burst: 2}, "a", "b", "c", "d")
	n.requireStarting("a", "b")
	d := n.join("e").TryStart(n.now)
	require.Equal(t, reasons.Rate, d.Reason)
	require.InDelta(t, 10, d.Held.Measured, 1e-6, "seconds until the next start")
	require.InDelta(t, 10, d.Held.Threshold, 1e-9, "seconds per start")
	require.Equal(t, 2, d.Ahead)

	next := n.pass(9 * time.Second)
	n.requireStarting("a", "b")
	require.WithinDuration(t, t0.Add(10*time.Second), next, time.Millisecond)
	n.now = next
	n.pass(0)
	n.requireStarting("a", "b", "c")
	n.pass(10 * time.Second)
	n.requireStarting("a", "b", "c", "d")
}

func TestTokensAreKeptOverConfigure(t *testing.T) {
	n := testNode(t, Settings{FillEvery: time.Minute, Burst: 3}, "a", "b", "c", "d")
	n.requireStarting("a", "b", "c")

	n.l.Configure(n.now, Settings{FillEvery: time.Minute, Burst: 3, MaxConcurrent: 9})
	n.requireStarting("a", "b", "c")
	n.l.Configure(n.now, Settings{FillEvery: time.Minute, Burst: 10})
	n.requireStarting("a", "b", "c")
	n.pass(30 * time.Second)
	n.l.Configure(n.now, Settings{FillEvery: 10 * time.Second, Burst: 10})
	n.requireStarting("a", "b", "c") // half a token does not count as one
	n.pass(5*time.Second + time.Millisecond)
	n.requireStarting("a", "b", "c", "d")
}

func TestALowerBurstCapsTheTokens(t *testing.T) {
	n := testNode(t, Settings{FillEvery: time.Minute, Burst: 5})
	n.l.Configure(n.now, Settings{FillEvery: time.Minute, Burst: -3}) // counts as one
	n.joinAndWait("a", "b")
	n.requireStarting("a")
}

// Two callers may read the clock in one order and take the lock in the other.
func TestALateCallerWithAnEarlierTimeFillsNoToken(t *testing.T) {
	n := testNode(t, Settings{FillEvery: time.Second, Burst: 2})
	require.True(t, n.join("a").TryStart(t0.Add(10*time.Second)).Granted)
	require.True(t, n.join("b").TryStart(t0.Add(5*time.Second)).Granted)
	require.False(t, n.join("c").TryStart(t0.Add(10*time.Second)).Granted)
	n.l.Configure(t0, Settings{FillEvery: time.Second, Burst: 2})
	require.False(t, n.join("c").TryStart(t0.Add(10*time.Second)).Granted)
}

func TestTokensAreKeptOverATimeWithoutTheLimit(t *testing.T) {
	t.Parallel()
	s := Settings{FillEvery: time.Minute, Burst: 3}
	n := newNode(t, s, "a", "b", "c")
	n.l.Configure(n.now, Settings{})
	n.joinAndWait("off")
	n.requireStarting("a", "b", "c", "off")
	n.pass(30 * time.Second)
	n.l.Configure(n.now, s)
	n.joinAndWait("d", "e")
	n.requireStarting("a", "b", "c", "off") // half a token
	n.l.Configure(n.now, Settings{})
	n.requireStarting("a", "b", "c", "off", "d", "e")
	n.l.Configure(n.now, s)
	n.joinAndWait("f")
	n.pass(29 * time.Second)
	n.requireState("f", Waiting, "")
	n.pass(time.Second + time.Millisecond)
	n.requireState("f", Starting, reasons.WithinLimits)
}

// Many pods are overdue, and their starts are short. Beside the tokens, they take one start in the time of a token.
func TestOverduePodsExceedTheRateOnceInTheTimeOfAToken(t *testing.T) {
	n := testNode(t, Settings{FillEvery: time.Minute, MaxWait: 10 * time.Minute})
	for i := range 40 {
		n.join(fmt.Sprintf("%02d", i)).Wait(n.now)
	}
	perMinute := make([]int, 60)
	for n.now.Sub(t0) < time.Hour {
		minute := int(n.now.Sub(t0) / time.Minute)
		for _, e := range n.l.Drain() {
			if e.State == Starting {
				perMinute[minute]++
			}
		}
		for _, t := range append([]*Ticket{}, n.l.slots.inFlight...) {
			if n.now.Sub(t.admitted) >= 4*time.Second {
				t.End(n.now, reasons.Ready)
			}
		}
		n.pass(time.Second)
	}
	t.Log(perMinute)
	require.Equal(t, []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0}, perMinute[:26])
}
