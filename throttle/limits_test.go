package throttle

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stubborn is a limit that refuses until it is told otherwise.
type stubborn struct {
	refuses bool
	taken   int
}

func (s *stubborn) check(time.Time) (Held, bool) {
	if s.refuses {
		return Held{Reason: "Stubborn", Measured: 2, Threshold: 1}, false
	}
	return Held{}, true
}
func (s *stubborn) take(time.Time)                               { s.taken++ }
func (s *stubborn) interval(time.Duration) (time.Duration, bool) { return 0, true }
func (s *stubborn) outlook(time.Time, view) (float64, bool)      { return math.Inf(1), true }

func TestTheThirdOfThreeLimitsRefusesAndNothingIsTaken(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 2, FillEvery: time.Hour, Burst: 2})
	third := &stubborn{refuses: true}
	n.l.limits = append(n.l.limits, third)

	a := n.join("a")
	for range 3 {
		d := a.TryStart(n.now)
		require.False(t, d.Admitted)
		require.Equal(t, Held{Reason: "Stubborn", Measured: 2, Threshold: 1}, d.Held)
	}
	b := n.attend("b")
	require.False(t, decided(b))
	require.Zero(t, third.taken)
	require.InDelta(t, 2, n.l.bucket.TokensAt(n.now), 1e-9, "tokens")
	n.requireStarting()

	third.refuses = false
	n.pass(0)
	n.requireStarting("b")
	require.True(t, a.TryStart(n.now).Admitted)
	require.Equal(t, 2, third.taken)
	require.InDelta(t, 0, n.l.bucket.TokensAt(n.now), 1e-9, "tokens")
}

func TestConcurrencyLimitIsChangedLive(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{MaxConcurrent: 3})
	n.attend("a", "b", "c", "d", "e")
	n.requireStarting("a", "b", "c")

	n.l.Configure(n.now, Settings{MaxConcurrent: 1})
	n.requireStarting("a", "b", "c")
	n.end("a", Ready)
	n.end("b", Ready)
	n.requireStarting("c")
	n.end("c", Ready)
	n.requireStarting("d")

	n.attend("f")
	n.l.Configure(n.now, Settings{MaxConcurrent: 2})
	n.requireStarting("d", "e")
	n.l.Configure(n.now, Settings{})
	n.requireStarting("d", "e", "f")
}

func TestRateAdmitsTheBurstThenOnePerFill(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{FillEvery: 10 * time.Second, Burst: 2})
	n.attend("a", "b", "c", "d")
	n.requireStarting("a", "b")
	d := n.join("e").TryStart(n.now)
	require.Equal(t, Rate, d.Reason)
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

func TestBurstBelowOneCountsAsOne(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{FillEvery: time.Second, Burst: -3})
	n.attend("a", "b")
	n.requireStarting("a")
}

func TestTokensAreKeptOverConfigure(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{FillEvery: time.Minute, Burst: 3})
	n.attend("a", "b", "c", "d")
	n.requireStarting("a", "b", "c")

	n.l.Configure(n.now, Settings{FillEvery: time.Minute, Burst: 3, MaxConcurrent: 9})
	n.requireStarting("a", "b", "c")
	n.l.Configure(n.now, Settings{FillEvery: time.Minute, Burst: 10})
	n.requireStarting("a", "b", "c")
	n.pass(30 * time.Second)
	n.l.Configure(n.now, Settings{FillEvery: 10 * time.Second, Burst: 10})
	n.requireStarting("a", "b", "c") // half a token is half a token
	n.pass(5*time.Second + time.Millisecond)
	n.requireStarting("a", "b", "c", "d")
}

func TestALowerBurstCapsTheTokens(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{FillEvery: time.Minute, Burst: 5})
	n.l.Configure(n.now, Settings{FillEvery: time.Minute, Burst: 1})
	n.attend("a", "b")
	n.requireStarting("a")
}

// Two callers may read the clock in one order and get the lock in the other.
func TestALateCallerWithAnEarlierTimeFillsNoToken(t *testing.T) {
	t.Parallel()
	n := newNode(t, Settings{FillEvery: time.Second, Burst: 2})
	require.True(t, n.join("a").TryStart(t0.Add(10*time.Second)).Admitted)
	require.True(t, n.join("b").TryStart(t0.Add(5*time.Second)).Admitted)
	require.False(t, n.join("c").TryStart(t0.Add(10*time.Second)).Admitted)
	n.l.Configure(t0, Settings{FillEvery: time.Second, Burst: 2})
	require.False(t, n.join("c").TryStart(t0.Add(10*time.Second)).Admitted)
}

func TestHeldSaysWhatWasMeasured(t *testing.T) {
	t.Parallel()
	for want, h := range map[string]Held{
		"2 of 2 starting":                 {Reason: Concurrency, Measured: 2, Threshold: 2},
		"next start in 1.5s, one per 10s": {Reason: Rate, Measured: 1.5, Threshold: 10},
		"3 ahead":                         {Reason: Queued, Measured: 3},
		"5 go before it, room for 5 near their turn":           {Reason: GateRoom, Measured: 5, Threshold: 5},
		"3 of 3 pulling images":                                {Reason: Pulling, Measured: 3, Threshold: 3},
		"cpu pressure 83% of 60%":                              {Reason: Pressure, Signal: SignalCPUPressure, Measured: 83, Threshold: 60},
		"full io pressure 12% of 7.5%":                         {Reason: Pressure, Signal: SignalIOFull, Measured: 12, Threshold: 7.5},
		"cpu 91% of 80%":                                       {Reason: CPULoad, Signal: SignalCPU, Measured: 91, Threshold: 80},
		"iowait 9% and 10% for starts not measured yet of 15%": {Reason: IOLoad, Signal: SignalIOWait, Measured: 19, Owed: 10, Threshold: 15},
		"load 3.25 of 3":                                       {Reason: LoadAverage, Signal: SignalLoad, Measured: 3.25, Threshold: 3},
		"load 2.25 and 1.00 for starts not measured yet of 3":  {Reason: LoadAverage, Signal: SignalLoad, Measured: 3.25, Owed: 1, Threshold: 3},
		"nothing holds it, nobody has come back for it yet":    {Reason: Absent},
		"next start in 334ms, one per 1m0.5s":                  {Reason: Rate, Measured: 0.33351, Threshold: 60.5},
		"":                                                     {},
	} {
		require.Equal(t, want, h.String(), "%+v", h)
	}
}

func TestTokensAreKeptOverATimeWithoutTheLimit(t *testing.T) {
	t.Parallel()
	s := Settings{FillEvery: time.Minute, Burst: 3}
	n := newNode(t, s)
	n.attend("a", "b", "c")
	n.l.Configure(n.now, Settings{})
	n.attend("off")
	n.requireStarting("a", "b", "c", "off")
	n.pass(30 * time.Second)
	n.l.Configure(n.now, s)
	n.attend("d", "e")
	n.requireStarting("a", "b", "c", "off") // half a token
	n.l.Configure(n.now, Settings{})
	n.requireStarting("a", "b", "c", "off", "d", "e")
	n.pass(-24 * time.Hour) // the bucket goes along with the clock
	n.l.Configure(n.now, s)
	n.attend("f")
	n.pass(29 * time.Second)
	n.requireState("f", Waiting, "")
	n.pass(time.Second + time.Millisecond)
	n.requireState("f", Starting, Free)
}
