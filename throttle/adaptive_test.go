package throttle

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// busy feeds the CPU use and the pressures over the last window. All have the same value.
func (n *node) busy(percent float64) {
	r := Reading{Value: percent, From: n.now.Add(-2 * time.Second), To: n.now}
	n.l.Observe(n.now, Signals{SignalCPU: r, SignalCPUPressure: r, SignalIOPressure: r})
}

func TestTheAdaptiveLimitIsTheConcurrency(t *testing.T) {
	n := testNode(t, Settings{Adaptive: &adaptive.Settings{Cores: 3}, StartTimeout: time.Hour})
	require.True(t, n.watched())
	for i := range 50 {
		n.joinAndWait(fmt.Sprintf("pod-%02d", i))
	}
	s := n.l.Snapshot(n.now)
	require.Equal(t, n.l.slots.adaptive.Limit(), s.Limit)
	require.Len(t, s.Starting, s.Limit)
	require.Equal(t, reasons.Concurrency, s.Held.Reason)
	require.NotEmpty(t, s.Adaptive)

	for range 100 { // the node is full
		n.pass(time.Second)
		n.busy(100)
	}
	less := n.l.Snapshot(n.now).Limit
	require.Equal(t, n.l.slots.adaptive.Limit(), less)
	require.Less(t, less, s.Limit)
	n.end("pod-00", reasons.Ready)
	require.Len(t, n.l.Snapshot(n.now).Starting, s.Limit-1, "no further start until fewer are under way")
	n.busy(100)
}

// The node cannot be measured. Neither the limit that was found on the full node nor that of an empty node is right
// any more.
func TestWithBlindSensorsTheAdaptiveLimitIsTheCoresTimesTheGoal(t *testing.T) {
	t.Parallel()
	for _, percent := range []float64{0, 100} {
		n := newNode(t, Settings{Adaptive: &adaptive.Settings{Cores: 4}, StartTimeout: time.Hour})
		for i := range 200 {
			n.joinAndWait(fmt.Sprintf("pod-%03d", i))
		}
		for range 100 {
			n.pass(time.Second)
			n.busy(percent)
		}
		require.NotEqual(t, 7, n.l.Snapshot(n.now).Limit)
		n.pass(time.Second)
		blind := Reading{From: n.now, To: n.now, Err: errBlind}
		n.l.Observe(n.now, Signals{SignalCPU: blind, SignalCPUPressure: blind, SignalIOPressure: blind})
		require.Equal(t, 7, n.l.Snapshot(n.now).Limit, n.l.Snapshot(n.now).Adaptive)
		n.pass(time.Second)
		n.l.Observe(n.now, Signals{})
		require.Equal(t, 7, n.l.Snapshot(n.now).Limit, "the limit is not measured again")
	}
}

func TestTheAdaptiveLimitContinuesWhenTheClockIsSetBack(t *testing.T) {
	n := testNode(t, Settings{Adaptive: &adaptive.Settings{Cores: 4}, StartTimeout: time.Hour})
	n.joinAndWait("a", "b", "c", "d", "e", "f", "g", "h")
	for range 20 {
		n.pass(time.Second)
		n.busy(50)
	}
	before := n.l.Snapshot(n.now).Limit
	n.pass(-24 * time.Hour)
	for range 20 {
		n.pass(time.Second)
		n.busy(100)
	}
	require.Less(t, n.l.Snapshot(n.now).Limit, before, n.l.Snapshot(n.now).Adaptive)
}

func TestTheLowerOfTwoConcurrencyLimitsCounts(t *testing.T) {
	t.Parallel()
	limit := func(most, cores int) int {
		return newNode(t, Settings{MaxConcurrent: most, Adaptive: &adaptive.Settings{Cores: cores}}).l.Snapshot(t0).Limit
	}
	found := limit(0, 4)
	require.Equal(t, found, limit(found+1, 4))
	require.Equal(t, found-1, limit(found-1, 4))
}

func TestAChangeOfOtherSettingsKeepsWhatAdaptiveLearned(t *testing.T) {
	t.Parallel()
	s := Settings{Adaptive: &adaptive.Settings{Cores: 4}}
	n := newNode(t, s)
	n.joinAndWait("a", "b", "c", "d", "e", "f")
	for range 100 {
		n.pass(time.Second)
		n.busy(100)
	}
	learned := n.l.Snapshot(n.now).Limit
	require.NotEqual(t, New(t0, s).Snapshot(t0).Limit, learned)
	s.MaxPulling = 3
	n.l.Configure(n.now, s)
	require.Equal(t, learned, n.l.Snapshot(n.now).Limit)
	n.l.Configure(n.now, Settings{})
	require.Zero(t, n.l.Snapshot(n.now).Limit)
	n.requireWaiting()
}

func TestTheAdaptiveLimitCountsThePodsThatCouldStart(t *testing.T) {
	t.Parallel()
	s := Settings{Adaptive: &adaptive.Settings{Cores: 1}, Signals: SignalLimits{SignalIOWait: {Max: 50}}}
	n := newNode(t, s)
	n.joinAndWait("a", "b", "c")
	n.join("absent")
	n.busy(50)
	n.pass(time.Second)
	sample := n.l.admission.sample(n.now)
	require.Equal(t, adaptive.Sample{
		At: t0, Window: 2 * time.Second, CPU: 50, CPUPressure: 50, IOPressure: 50,
		CPUKnown: true, CPUPressureKnown: true, IOPressureKnown: true,
		Starting: len(n.l.Snapshot(n.now).Starting), Waiting: true,
		Queued: true,
	}, sample)
	n.measure(SignalIOWait, 60)
	require.False(t, n.l.admission.sample(n.now).Waiting, "another limit holds the pods")
	n.l.Observe(n.now, Signals{SignalCPU: {Err: errBlind, To: n.now}})
	sample = n.l.admission.sample(n.now)
	require.Equal(t, []any{n.now, false, time.Duration(0)}, []any{sample.At, sample.CPUKnown, sample.Window})
}

// What starts got of the CPUs and waited for is summed up. Exempt starts do not count, nor those whose time of
// waiting is not known.
func TestTheAdaptiveLimitKnowsHowLongStartsWaitForCPUs(t *testing.T) {
	n := testNode(t, Settings{Adaptive: &adaptive.Settings{Cores: 4}, StartTimeout: time.Hour})
	n.joinAndWait("idles", "burns", "unknown")
	n.join("exempt").StartExempt(n.now)
	n.l.Lookup("idles").SetUse(adaptive.Use{CPU: time.Second, WaitedKnown: true})
	n.l.Lookup("burns").SetUse(adaptive.Use{CPU: time.Second, Cores: 1, Waited: 0.25, WaitedKnown: true})
	n.l.Lookup("unknown").SetUse(adaptive.Use{CPU: time.Second, Cores: 1})
	n.l.Lookup("exempt").SetUse(adaptive.Use{CPU: time.Second, Cores: 1, Waited: 0.5, WaitedKnown: true})
	s := n.l.admission.sample(n.now)
	require.InDelta(t, 0.75, s.Ran, 1e-9)
	require.InDelta(t, 0.25, s.Waited, 1e-9)
}

// Exempt starts are light, and a Stuck start may have waited for something all the time. Neither says how many of the
// waiting pods the node can bear.
func TestTheAdaptiveLimitLearnsNothingOfExemptAndStuckStarts(t *testing.T) {
	n := testNode(t, Settings{Adaptive: &adaptive.Settings{Cores: 4}, StartTimeout: time.Minute})
	n.join("exempt").StartExempt(n.now)
	v, _ := n.l.View(n.now, "exempt")
	require.True(t, v.Slot)
	require.Zero(t, n.l.admission.sample(n.now).Starting)
	n.pass(time.Second)
	n.end("exempt", reasons.Ready)
	require.Zero(t, n.l.admission.sample(n.now).Made)

	n.joinAndWait("stuck")
	require.Equal(t, 1, n.l.admission.sample(n.now).Starting)
	n.pass(time.Minute)
	n.requireState("stuck", Started, reasons.Stuck)
	require.Zero(t, n.l.admission.sample(n.now).Made)
	n.joinAndWait("ready")
	n.end("ready", reasons.Ready)
	require.Equal(t, 1, n.l.admission.sample(n.now).Made)
}

// The bound after a killed start ends a minute after the herd. A pod that a policy holds for hours is no herd, nor one whose
// image cannot be pulled.
func TestAPodThatAPolicyHoldsDoesNotKeepTheBoundAfterAKilledStart(t *testing.T) {
	n := testNode(t, Settings{Adaptive: &adaptive.Settings{Cores: 8}, StartTimeout: time.Hour})
	n.l.SetPolicies(n.now, map[string]GroupLimits{"t1": {Running: pods(0)}})
	n.busy(0)
	before := n.l.Snapshot(n.now).Limit
	n.l.Join(n.now, Request{UID: "held", Groups: in(t1, nil)})
	n.l.Join(n.now, Request{UID: "prepared"}).Prepare(n.now, false)
	for i := range before {
		n.joinAndWait(fmt.Sprint("pod-", i))
	}
	observe := func(seconds int, percent float64) {
		for range seconds {
			n.pass(time.Second)
			n.busy(percent)
		}
	}
	observe(20, 100)
	n.end("pod-0", reasons.Exited)
	observe(1, 100)
	require.LessOrEqual(t, n.l.Snapshot(n.now).Limit, before/2, n.l.Snapshot(n.now).Adaptive)
	for i := range before {
		n.end(fmt.Sprint("pod-", i), reasons.Deleted)
	}
	observe(50, 0)
	require.LessOrEqual(t, n.l.Snapshot(n.now).Limit, before/2, n.l.Snapshot(n.now).Adaptive)
	observe(15, 0)
	require.Equal(t, before, n.l.Snapshot(n.now).Limit, n.l.Snapshot(n.now).Adaptive)
	require.False(t, n.l.admission.sample(n.now).Queued)
}
