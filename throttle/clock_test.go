package throttle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAClockThatIsSetBackMakesNothingOlderOrYounger(t *testing.T) {
	t.Parallel()
	const back = 24 * time.Hour
	n := newNode(t, Settings{
		MaxConcurrent: 2, FillEvery: 10 * time.Second, MaxWait: time.Minute, StartTimeout: 90 * time.Second,
		CPU: SignalLimit{Max: 80, Increment: 60},
	})
	n.attend("a", "b")
	n.join("absent")
	n.pass(4 * time.Second)
	n.measure(SignalCPU, 10)

	n.pass(-back)
	at := n.now.Add(-4 * time.Second)
	s := n.l.Snapshot(n.now)
	require.Equal(t, at, s.Starting[0].Admitted)
	require.Equal(t, at, s.Waiting[0].Arrived)
	require.Equal(t, []Reason{Rate, Rate}, []Reason{s.Waiting[0].Reason, s.Held.Reason})
	require.InDelta(t, 6, s.Held.Measured, 1e-6, "seconds until the next token, as before")
	n.pass(6*time.Second + time.Millisecond)
	n.requireStarting("a", "b")
	n.pass(80 * time.Second)
	n.requireState("a", Started, Stuck)
}

func TestAClockThatJumpsAheadLeavesNobodyBehind(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1, MaxWait: time.Hour})
	n.attend("a", "b", "c")
	n.pass(24 * time.Hour)
	n.requireState("a", Started, Stuck)
	n.requireState("b", Starting, Free)
	n.requireState("c", Starting, MaxWait)
	n.pass(-24 * time.Hour)
	require.Equal(t, n.now.Add(DefaultStartTimeout), n.pass(0))
}

func TestALateCallerTurnsNoClockBack(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 1})
	n.pass(time.Hour)
	n.l.Join(t0, Request{UID: "a"}).Attend(t0)
	v, _ := n.l.View(n.now, "a")
	require.Equal(t, []time.Time{n.now, n.now}, []time.Time{v.Arrived, v.Admitted})
	n.l.Advance(n.now.Add(-clockTolerance))
	v, _ = n.l.View(n.now, "a")
	require.Equal(t, n.now, v.Arrived)
}
