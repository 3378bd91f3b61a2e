package throttle

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

var errBlind = errors.New("the sensor is blind")

// measure feeds one signal, measured over the last two seconds, and keeps the others.
func (n *node) measure(signal Signal, value float64) {
	s := n.l.limits.signals
	s[signal] = Reading{Value: value, From: n.now.Add(-2 * time.Second), To: n.now}
	n.l.Observe(n.now, s)
}

func TestASignalHoldsStartsBackUntilItIsBelowItsBound(t *testing.T) {
	t.Parallel()
	for signal, reason := range map[Signal]reasons.Reason{
		SignalCPU: reasons.CPULoad, SignalIOWait: reasons.IOLoad, SignalLoad: reasons.LoadAverage, SignalCPUPressure: reasons.Pressure,
		SignalMemoryPressure: reasons.Pressure, SignalMemoryFull: reasons.Pressure, SignalIOPressure: reasons.Pressure, SignalIOFull: reasons.Pressure,
	} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			s := Settings{MinUtilization: -1} // so that the pressure of the CPUs counts alone
			s.Signals[signal].Max = 80
			n := newNode(t, s)
			require.True(t, n.watched())
			n.measure(signal, 80)
			require.Equal(t, Decision{Reason: reason, Held: Held{Reason: reason, Signal: signal, Measured: 80, Threshold: 80}}, n.join("a").TryStart(n.now))

			b := n.joinAndWait("b")
			n.pass(time.Second)
			require.False(t, decided(b))
			n.measure(signal, 79.9)
			n.requireState("b", Starting, reasons.WithinLimits)
		})
	}
}

func TestABlindSignalOpensItsLimit(t *testing.T) {
	t.Parallel()
	full := Reading{Value: 100, From: t0.Add(-2 * time.Second), To: t0}
	for name, r := range map[string]Reading{
		"never measured": {},
		"blind":          {Value: 100, To: t0, Err: errBlind},
		"not a number":   {Value: math.NaN(), From: full.From, To: t0},
		"infinite":       {Value: math.Inf(1), From: full.From, To: t0},
		"long ago":       {Value: 100, To: t0.Add(-readingValidFor - 1)},
	} {
		t.Run(name, func(t *testing.T) {
			n := testNode(t, Settings{Signals: SignalLimits{SignalCPU: {Max: 80}}})
			n.l.Observe(n.now, Signals{SignalCPU: full})
			a := n.joinAndWait("a")
			require.False(t, decided(a))
			n.l.Observe(n.now, Signals{SignalCPU: r})
			n.requireState("a", Starting, reasons.WithinLimits)
		})
	}
}

// A sensor that dies without an error holds no pod for ever.
func TestAnOldReadingOpensItsLimitInTime(t *testing.T) {
	n := testNode(t, Settings{Signals: SignalLimits{SignalCPUPressure: {Max: 60}}})
	n.measure(SignalCPU, 95)
	n.pass(time.Second)
	n.measure(SignalCPUPressure, 90)
	a := n.joinAndWait("a")
	next := n.pass(0)
	require.Equal(t, t0.Add(readingValidFor+1), next, "the CPU use is unknown from then on")
	n.pass(next.Sub(n.now))
	require.True(t, decided(a))
}

func TestStartsOweUntilTheSignalIsMeasuredAfterThem(t *testing.T) {
	n := testNode(t, Settings{Signals: SignalLimits{SignalCPU: {Max: 80, Increment: 20}}})
	n.measure(SignalCPU, 30)
	n.joinAndWait("a", "b", "c", "d")
	n.requireStarting("a", "b", "c") // 30, 50, 70
	d := n.join("d").TryStart(n.now)
	require.Equal(t, Held{Reason: reasons.CPULoad, Signal: SignalCPU, Measured: 90, Owed: 60, Threshold: 80}, d.Held)

	n.pass(1900 * time.Millisecond) // the window began before the starts
	n.measure(SignalCPU, 30)
	n.requireStarting("a", "b", "c")
	n.pass(100 * time.Millisecond) // the window begins with the starts
	n.measure(SignalCPU, 65)
	n.requireStarting("a", "b", "c", "d")
	require.InDelta(t, 20, n.join("e").TryStart(n.now).Held.Owed, 1e-9, "only the last start owes")
}

func TestCPUPressureCountsOnlyWhereTheCPUIsUsed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		least float64
		cpu   Reading
		holds bool
	}{
		"busy":                   {0, Reading{Value: 71, To: t0}, true},
		"a pod at its own limit": {0, Reading{Value: 70, To: t0}, false},
		"above the bound set":    {20, Reading{Value: 21, To: t0}, true},
		"always":                 {-1, Reading{Value: 0, To: t0}, true},
		"CPU use never measured": {0, Reading{}, false},
		"CPU use cannot be read": {0, Reading{Value: 99, To: t0, Err: errBlind}, false},
		"always, also if blind":  {-1, Reading{Err: errBlind}, true},
	} {
		t.Run(name, func(t *testing.T) {
			n := testNode(t, Settings{Signals: SignalLimits{SignalCPUPressure: {Max: 60}}, MinUtilization: c.least})
			n.l.Observe(n.now, Signals{SignalCPU: c.cpu, SignalCPUPressure: {Value: 83, To: t0}})
			d := n.join("a").TryStart(n.now)
			require.Equal(t, c.holds, !d.Granted)
			if c.holds {
				require.Equal(t, Held{Reason: reasons.Pressure, Signal: SignalCPUPressure, Measured: 83, Threshold: 60}, d.Held)
			}
		})
	}
}

func TestTheDebtOfStartsOutlivesAChangeOfTheSettings(t *testing.T) {
	t.Parallel()
	s := Settings{Signals: SignalLimits{SignalCPU: {Max: 80, Increment: 40}}}
	n := newNode(t, s)
	n.measure(SignalCPU, 30)
	n.joinAndWait("a", "b", "c")
	n.requireStarting("a", "b")
	s.MaxConcurrent = 9
	n.l.Configure(n.now, s)
	n.requireStarting("a", "b")
	n.l.Configure(n.now, Settings{})
	n.requireStarting("a", "b", "c")
}

func TestARefusalByAnotherLimitOwesNothing(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, Signals: SignalLimits{SignalCPU: {Max: 80, Increment: 20}}})
	n.measure(SignalCPU, 30)
	n.joinAndWait("a")
	for range 5 {
		require.Equal(t, reasons.Concurrency, n.join("b").TryStart(n.now).Reason)
	}
	require.Len(t, n.l.limits.debts.times, 1)
}

func TestOldDebtsAreForgotten(t *testing.T) {
	n := testNode(t, Settings{})
	for range 1000 {
		n.joinAndWait("a")
		n.end("a", reasons.Ready)
		n.pass(time.Second)
	}
	require.LessOrEqual(t, len(n.l.limits.debts.times), 302)
}

func TestBusySaysWhetherAnythingStartsOrWaits(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1})
	require.False(t, n.watched())
	require.Equal(t, "idle", n.busyWith())
	n.joinAndWait("a")
	require.Equal(t, "starting", n.busyWith())
	n.join("b")
	require.Equal(t, "waiting", n.busyWith())
	n.end("b", reasons.Deleted)
	n.join("x").StartExempt(n.now)
	n.end("a", reasons.Ready)
	require.Equal(t, "starting", n.busyWith(), "a start without a slot")
	n.end("x", reasons.Ready)
	require.Equal(t, "idle", n.busyWith())
}

// Pods that kubelet does not retry cause no sampling at four times a second.
func TestAPodThatIsNotRetriedDoesNotCountAsWaiting(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, StartTimeout: time.Hour, MaxWait: time.Hour}, "holder")
	absent := n.join("absent")
	lull := func() {
		t.Helper()
		n.pass(backWithin - 1)
		require.Equal(t, "waiting", n.busyWith())
		n.pass(1)
		require.Equal(t, "starting", n.busyWith())
		n.l.Changed()
	}
	lull()
	for name, come := range map[string]func(){
		"joins":      func() { n.join("absent") },
		"at sandbox": func() { absent.Reserve(n.now, waitable, RetriedSoon) },
		"at process": func() { require.False(t, absent.TryStart(n.now).Granted) },
		"leaves":     func() { absent.Wait(n.now); n.pass(time.Minute); absent.StopWaiting(n.now) },
	} {
		come()
		require.Equal(t, "waiting", n.busyWith(), name)
		require.True(t, n.l.Changed(), "%s: the demand rose", name)
		lull()
	}
	absent.Wait(n.now)
	n.pass(10 * backWithin)
	require.Equal(t, "waiting", n.busyWith(), "the pod is present")
	absent.End(n.now, reasons.Deleted)
	n.end("holder", reasons.Ready)
	n.join("absent")
	n.pass(backWithin)
	require.Equal(t, "idle", n.busyWith())
}

// A waiting pod does not start into the load of pods that never wait.
func TestAnExemptStartOwesAlsoWithoutASlot(t *testing.T) {
	n := testNode(t, Settings{MaxConcurrent: 1, Signals: SignalLimits{SignalCPU: {Max: 80, Increment: 20}}})
	n.measure(SignalCPU, 30)
	n.joinAndWait("holder", "waits")
	n.pass(time.Second)
	for _, uid := range []string{"x", "y"} {
		n.join(uid).StartExempt(n.now)
		n.requireState(uid, Starting, reasons.Exempt)
	}
	_, known := n.l.admission.admissionsEvery(n.now)
	require.False(t, known, "exempt starts say nothing about the interval between admissions")
	n.end("holder", reasons.Ready)
	d := n.join("waits").TryStart(n.now)
	require.Equal(t, Held{Reason: reasons.CPULoad, Signal: SignalCPU, Measured: 90, Owed: 60, Threshold: 80}, d.Held)
	n.pass(2 * time.Second)
	n.measure(SignalCPU, 75)
	n.requireState("waits", Starting, reasons.WithinLimits)
}

// Limits on a signal without and with an increment.
var (
	pressureLimit = SignalLimits{SignalMemoryPressure: {Max: 60}}
	cpuLimit      = SignalLimits{SignalCPU: {Max: 80, Increment: 25}}
)

// While no limit on a signal holds a start, the free slots have places: pods must not wait for each other's images on an idle
// node. Where a limit was closed a moment ago, there is one place until it is known how many it admits.
func TestAnIdleNodeHasAPlaceForEachFreeSlot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings  Settings
		signal    Signal
		value     float64
		openSince time.Duration // 0: it never was closed
		want      int
	}{
		"no increment":              {Settings{MaxConcurrent: 3, Signals: pressureLimit}, SignalMemoryPressure, 10, 0, 3},
		"two increments are left":   {Settings{MaxConcurrent: 3, Signals: cpuLimit}, SignalCPU, 40, 0, 2},
		"for a short time":          {Settings{MaxConcurrent: 3, Signals: pressureLimit}, SignalMemoryPressure, 10, staysOpen - time.Second, 1},
		"again for a while":         {Settings{MaxConcurrent: 3, Signals: pressureLimit}, SignalMemoryPressure, 10, staysOpen, 3},
		"closed":                    {Settings{MaxConcurrent: 3, Signals: pressureLimit}, SignalMemoryPressure, 70, 0, 1},
		"no limit but the signal's": {Settings{Signals: pressureLimit}, SignalMemoryPressure, 10, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			n := testNode(t, c.settings)
			if c.openSince > 0 {
				n.measure(c.signal, 100)
				n.pass(c.openSince)
			}
			n.measure(c.signal, c.value)
			require.Equal(t, c.want, n.reserve("pod", 8))
		})
	}
}

// As many pods as the limits on signals allow at once are not expected one after the other: the waiting room keeps a
// pod whose turn is far.
func TestPodsThatSignalsAllowAtOnceHaveTheirTurnAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings Settings
		signal   Signal
		value    float64
		want     []float64 // seconds from now, of four pods that come
	}{
		"no increment":             {Settings{MaxConcurrent: 3, Signals: pressureLimit}, SignalMemoryPressure, 10, []float64{0, 0, 0, 15}},
		"one increment is left":    {Settings{MaxConcurrent: 3, Signals: cpuLimit}, SignalCPU, 60, []float64{0, 15, 30, 45}},
		"two increments are left":  {Settings{MaxConcurrent: 3, Signals: cpuLimit}, SignalCPU, 40, []float64{0, 0, 15, 30}},
		"closed":                   {Settings{MaxConcurrent: 3, Signals: pressureLimit}, SignalMemoryPressure, 70, []float64{15, 30, 45, 60}},
		"the rate is slower, open": {Settings{MaxConcurrent: 3, Signals: pressureLimit, FillEvery: time.Minute}, SignalMemoryPressure, 10, []float64{0, 60, 120, 180}},
	} {
		t.Run(name, func(t *testing.T) {
			n := testNode(t, c.settings)
			n.measure(c.signal, c.value)
			for i := range c.want {
				n.join(string(rune('a' + i)))
			}
			var got []float64
			for _, v := range n.l.Snapshot(n.now).Waiting {
				got = append(got, v.WaitLeft.Seconds())
			}
			require.Equal(t, c.want, got)
		})
	}
}
