package observe

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// heardEvents keeps what was written, as "reason pod: message".
type heardEvents struct{ lines []string }

func (h *heardEvents) Pod(_, title, kind, reason, message string) {
	h.lines = append(h.lines, fmt.Sprintf("%s %s %s: %s", kind, reason, title, message))
}

func (h *heardEvents) Node(string, string, string) {}

// take gives what was written since the last call.
func (h *heardEvents) take() []string {
	lines := h.lines
	h.lines = nil
	return lines
}

// story is a limiter and what is told of it.
type story struct {
	t       *testing.T
	now     time.Time
	limiter *throttle.Limiter
	events  *podEvents
	heard   heardEvents
}

func newStory(t *testing.T, s throttle.Settings) *story {
	now := time.Unix(1000, 0)
	return &story{t: t, now: now, limiter: throttle.New(now, s), events: newPodEvents()}
}

func (s *story) joins(name string) *throttle.Ticket {
	return s.limiter.Join(s.now, throttle.Request{UID: name, Name: "default/" + name})
}

// passes lets time pass, by the second, and gives what was told.
func (s *story) passes(d time.Duration) []string {
	s.t.Helper()
	for end := s.now.Add(d); ; s.now = s.now.Add(time.Second) {
		s.limiter.Advance(s.now)
		happened, lost := s.limiter.Drain()
		require.Zero(s.t, lost)
		for _, e := range happened {
			s.events.happened(&s.heard, e)
		}
		s.events.look(s.now, &s.heard, s.limiter)
		if !s.now.Before(end) {
			return s.heard.take()
		}
	}
}

func TestEventsTellOfAWaitThatIsWorthIt(t *testing.T) {
	t.Parallel()
	s := newStory(t, throttle.Settings{MaxConcurrent: 1, NoProgressAfter: -1})
	holder := s.joins("holder")
	holder.Wait(s.now)
	s.joins("brief").Wait(s.now)
	assert.Empty(t, s.passes(4*time.Second))
	holder.End(s.now, reasons.Ready)
	s.joins("long").Wait(s.now)
	assert.Empty(t, s.passes(4*time.Second), "brief waited for less than is worth an event")
	assert.Equal(t, []string{
		"Normal WaitingToStart default/long: Waits for its turn to start, place 1 of 1: Concurrency (1 of 1 starting); expected in about 6s",
	}, s.passes(5*time.Second))
	assert.Empty(t, s.passes(2*time.Minute), "it still waits for the same")

	var busy throttle.Signals
	busy[throttle.SignalCPU] = throttle.Reading{Value: 90, From: s.now, To: s.now.Add(time.Second)}
	s.limiter.Observe(s.now, busy)
	s.limiter.Configure(s.now, throttle.Settings{Signals: throttle.SignalLimits{throttle.SignalCPU: {Max: 80}}})
	told := s.passes(10 * time.Second)
	require.Len(t, told, 1, "the reason has changed")
	assert.Contains(t, told[0], "CPULoad (cpu 90% of 80%)")
	s.limiter.Configure(s.now, throttle.Settings{MaxConcurrent: 1, NoProgressAfter: -1})
	assert.Empty(t, s.passes(40*time.Second), "not every change")
	assert.Len(t, s.passes(20*time.Second), 1, "a minute later")

	s.limiter.Lookup("brief").End(s.now, reasons.Ready)
	told = s.passes(time.Second)
	require.Len(t, told, 1)
	assert.Regexp(t, "^Normal StartAdmitted default/long: Admitted after .*: WithinLimits$", told[0])
}

func TestEventsTellWhatIsOutOfTheOrdinary(t *testing.T) {
	t.Parallel()
	s := newStory(t, throttle.Settings{MaxConcurrent: 1, StartTimeout: time.Minute, NoProgressAfter: time.Second})
	s.joins("stuck").TryStart(s.now)
	s.joins("over").DeadlineReached(s.now)
	s.joins("expired").DeadlineReached(s.now)
	assert.Equal(t, []string{
		"Normal StartAdmitted default/over: Admitted over the limit after 0s: GateDeadline",
		"Warning GateExpired default/expired: The wait in the gate ended without a turn; kubelet tries again, the pod keeps its place",
	}, s.passes(time.Second))
	s.limiter.Lookup("over").End(s.now, reasons.Ready)
	s.limiter.SetStalled(s.now, "stuck", s.now.Add(-time.Second))
	s.joins("lent").Wait(s.now)
	assert.Equal(t, []string{
		"Normal SlotLent default/lent: Lent a slot after 0s: the pods that hold all slots make no progress, maybe they wait for this one",
	}, s.passes(time.Second))
	s.limiter.Lookup("expired").End(s.now, reasons.Deleted)
	s.limiter.Lookup("lent").End(s.now, reasons.Ready)
	assert.Equal(t, []string{
		"Warning StartStuck default/stuck: Not ready 1m0s after it was admitted; the start no longer counts and others go on",
	}, s.passes(time.Minute))
}

// A herd does not make many events, and those of its wait do not keep what is out of
// the ordinary from being told.
func TestAHerdMakesFewEvents(t *testing.T) {
	t.Parallel()
	s := newStory(t, throttle.Settings{MaxConcurrent: 1, NoProgressAfter: time.Second})
	s.joins("holder").TryStart(s.now)
	for i := range 500 {
		s.joins(fmt.Sprintf("pod-%03d", i)).Wait(s.now)
	}
	told := s.passes(time.Minute)
	assert.LessOrEqual(t, len(told), eventBurst+int(time.Minute/eventEvery))
	assert.Greater(t, len(told), eventBurst)
	assert.Contains(t, told[0], "default/pod-000", "the first in line first")

	s.limiter.SetStalled(s.now, "holder", s.now.Add(-time.Second))
	assert.Equal(t, 1, strings.Count(strings.Join(s.passes(time.Second), "\n"), "SlotLent default/pod-000"))
	most := 0
	for range 10 {
		most = max(most, len(s.passes(time.Minute)))
	}
	assert.LessOrEqual(t, most, 2*int(time.Minute/eventEvery)+eventBurst)
	assert.LessOrEqual(t, len(s.events.told), 501, "nothing is kept of those that are gone")
}

// Of a wait that ends in the mode Shadow, or while more happens than can be told, no
// event says that it has ended.
func TestNothingIsKeptOfWaitsWhoseEndWasNotTold(t *testing.T) {
	t.Parallel()
	s := newStory(t, throttle.Settings{MaxConcurrent: 1, NoProgressAfter: -1})
	s.joins("holder").TryStart(s.now)
	var waiting []*throttle.Ticket
	for i := range eventBurst {
		waiting = append(waiting, s.joins(fmt.Sprintf("pod-%03d", i)))
		waiting[i].Wait(s.now)
	}
	require.Len(t, s.passes(worthTelling+lookEvery), eventBurst)
	for _, ticket := range waiting {
		ticket.End(s.now, reasons.Deleted)
	}
	s.limiter.Drain()
	s.joins("waits").Wait(s.now)
	s.passes(3 * lookEvery)
	assert.LessOrEqual(t, len(s.events.told), 1)
}

func TestAnUnpacedStartIsToldOnThePod(t *testing.T) {
	t.Parallel()
	var heard heardEvents
	o := New(Options{Log: discard(), Events: &heard, Nodes: func() int { return 1 }})
	o.Unpaced("uid", "default/web", NotAsked)
	assert.Equal(t, []string{"Warning StartUnpaced default/web: NotAsked: a start went on without its turn: it is counted from now on"}, heard.take())
	for range 2 * eventBurst {
		o.Unpaced("uid", "default/web", Panic)
	}
	assert.Less(t, len(heard.take()), eventBurst+2)
	for _, reason := range []reasons.Reason{NotAsked, Panic} {
		assert.NotEmpty(t, unpacedTexts[reason])
	}
}
