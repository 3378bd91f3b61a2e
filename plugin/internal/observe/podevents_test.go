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

// heardEvents records the events, as "reason pod: message".
type heardEvents struct{ lines []string }

func (h *heardEvents) Pod(_, title, kind, reason, message string) {
	h.lines = append(h.lines, fmt.Sprintf("%s %s %s: %s", kind, reason, title, message))
}

func (h *heardEvents) Node(string, string, string) {}

// take returns the events since the last call.
func (h *heardEvents) take() []string {
	lines := h.lines
	h.lines = nil
	return lines
}

// story is a limiter and the events about it.
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

// passes lets time pass, by the second, and returns the events.
func (s *story) passes(d time.Duration) []string {
	s.t.Helper()
	for end := s.now.Add(d); ; s.now = s.now.Add(time.Second) {
		s.limiter.Advance(s.now)
		for _, e := range s.limiter.Drain() {
			s.events.happened(&s.heard, Pod{e.Ticket.UID(), e.Ticket.Name()}, e)
		}
		s.events.look(s.now, &s.heard, s.limiter.Snapshot(s.now))
		if !s.now.Before(end) {
			return s.heard.take()
		}
	}
}

func TestEventsReportOnlyLongWaits(t *testing.T) {
	t.Parallel()
	s := newStory(t, throttle.Settings{MaxConcurrent: 1, NoProgressAfter: -1})
	holder := s.joins("holder")
	holder.Wait(s.now)
	s.joins("brief").Wait(s.now)
	assert.Empty(t, s.passes(4*time.Second))
	holder.End(s.now, reasons.Ready)
	s.joins("long").Wait(s.now)
	assert.Empty(t, s.passes(4*time.Second), "brief waited too short a time for an event")
	assert.Equal(t, []string{
		"Normal WaitingToStart default/long: Waits for its turn to start, place 1 of 1: Concurrency (1 of 1 starting); expected in about 5s",
	}, s.passes(5*time.Second))
	assert.Empty(t, s.passes(2*time.Minute), "the pod still waits for the same reason")

	var busy throttle.Signals
	busy[throttle.SignalCPU] = throttle.Reading{Value: 90, From: s.now, To: s.now.Add(time.Second)}
	s.limiter.Observe(s.now, busy)
	s.limiter.Configure(s.now, throttle.Settings{Signals: throttle.SignalLimits{throttle.SignalCPU: {Max: 80}}})
	told := s.passes(10 * time.Second)
	require.Len(t, told, 1, "the reason has changed")
	assert.Contains(t, told[0], "CPULoad (cpu 90% of 80%)")
	s.limiter.Configure(s.now, throttle.Settings{MaxConcurrent: 1, NoProgressAfter: -1})
	assert.Empty(t, s.passes(40*time.Second), "not every change gives an event")
	assert.Len(t, s.passes(20*time.Second), 1, "the next event comes a minute later")

	s.limiter.Lookup("brief").End(s.now, reasons.Ready)
	told = s.passes(time.Second)
	require.Len(t, told, 1)
	assert.Regexp(t, "^Normal StartAdmitted default/long: Admitted after .*: WithinLimits$", told[0])
}

// kubelet, and nothing else, keeps a pod whose images it pulls.
func TestNoEventSaysThatAPodWaitsWhoseImagesArePulled(t *testing.T) {
	t.Parallel()
	s := newStory(t, throttle.Settings{MaxConcurrent: 1, NoProgressAfter: -1})
	pulls := s.joins("pulls")
	pulls.Prepare(s.now, true)
	assert.Empty(t, s.passes(time.Minute))
	pulls.Wait(s.now)
	assert.Empty(t, s.passes(time.Second), "it waited for no time")
	s.joins("other").Prepare(s.now, true)
	assert.Empty(t, s.passes(time.Minute))
}

// The pods that a policy holds may be the only ones that wait, for hours.
func TestAPodThatAPolicyHoldsHasOneEvent(t *testing.T) {
	t.Parallel()
	for most, want := range map[int64]string{
		0: "Warning Unadmittable default/held: Cannot start: this pod alone exceeds a limit of a StartPolicy, and waiting does not help: ",
		1: "Normal WaitingToStart default/held: Waits for its turn to start, place 1 of 1: PolicyRunning ",
	} {
		s := newStory(t, throttle.Settings{})
		group := []throttle.Membership{{Key: throttle.GroupKey{Policy: "db"}}}
		s.limiter.SetPolicies(s.now, map[string]throttle.GroupLimits{"db": {Running: throttle.Bound{Pods: &most}}},
			throttle.PodGroups{UID: "runs", Groups: group, Running: true})
		s.limiter.Join(s.now, throttle.Request{UID: "held", Name: "default/held", Groups: group}).Wait(s.now)
		told := s.passes(time.Hour)
		require.Len(t, told, 1)
		assert.Contains(t, told[0], want)
		assert.Zero(t, s.events.look(s.now, &s.heard, s.limiter.Snapshot(s.now)), "nothing is due")
	}
}

func TestEventsReportTheUnusual(t *testing.T) {
	t.Parallel()
	s := newStory(t, throttle.Settings{MaxConcurrent: 1, StartTimeout: time.Minute, NoProgressAfter: time.Second})
	s.joins("stuck").TryStart(s.now)
	expired := s.joins("expired")
	expired.DeadlineReached(s.now)
	expired.DeadlineReached(s.now)
	assert.Equal(t, []string{"Warning GateExpired default/expired: " + expiredText}, s.passes(time.Second), "once for the pod")
	s.limiter.Lookup("stuck").SetStalled(s.now, s.now.Add(-time.Second))
	s.joins("lent").Wait(s.now)
	assert.Equal(t, []string{
		"Normal SlotLent default/lent: Got a slot beyond the limit after 0s: the pods within the limit make no progress, and may depend on this pod",
	}, s.passes(time.Second))
	s.limiter.Lookup("expired").End(s.now, reasons.Deleted)
	s.limiter.Lookup("lent").End(s.now, reasons.Ready)
	assert.Equal(t, []string{
		"Warning StartStuck default/stuck: Not ready 1m0s after it was admitted; the start no longer counts, and other pods may start",
	}, s.passes(time.Minute))
}

// Nor do pods that start without a decision, as when the hook of a herd finds no daemon.
func TestUnpacedStartsMakeFewEvents(t *testing.T) {
	t.Parallel()
	var written countedEvents
	o := New(Options{Log: discard(), Events: &written, Nodes: func() int { return 1 }})
	for range 2 * eventBurst {
		o.Report(Unpaced{Pod: Pod{"u1", "ns/web"}, Reason: NotAsked})
	}
	assert.InDelta(t, eventBurst, written.pods.Load(), 1)
}

// A herd makes few events. The events about its wait do not displace the events about faults.
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
	assert.Contains(t, told[0], "default/pod-000", "the first in the queue is reported first")

	s.limiter.Lookup("holder").SetStalled(s.now, s.now.Add(-time.Second))
	assert.Equal(t, 1, strings.Count(strings.Join(s.passes(time.Second), "\n"), "SlotLent default/pod-000"))
	most := 0
	for range 10 {
		most = max(most, len(s.passes(time.Minute)))
	}
	assert.LessOrEqual(t, most, 2*int(time.Minute/eventEvery)+eventBurst)
	assert.LessOrEqual(t, len(s.events.written), 501, "pods that are gone leave no entry")
}

// A user looks for the reason at the pod that never starts, whatever waits before it.
func TestAHerdDoesNotHideThatAPodCanNeverStart(t *testing.T) {
	t.Parallel()
	s := newStory(t, throttle.Settings{MaxConcurrent: 1, NoProgressAfter: -1})
	s.limiter.SetPolicies(s.now, map[string]throttle.GroupLimits{"db": {Running: throttle.Bound{Pods: new(int64)}}})
	s.joins("holder").TryStart(s.now)
	for i := range 500 {
		s.joins(fmt.Sprintf("pod-%03d", i)).Wait(s.now)
	}
	s.passes(time.Minute)
	group := []throttle.Membership{{Key: throttle.GroupKey{Policy: "db"}}}
	s.limiter.Join(s.now, throttle.Request{UID: "never", Name: "default/never", Groups: group}).Wait(s.now)
	assert.Contains(t, strings.Join(s.passes(2*lookEvery), "\n"), "Unadmittable default/never")
}

// A wait that was reported may end in the mode Shadow, which writes no events.
func TestAWaitThatEndsInTheModeShadowIsForgotten(t *testing.T) {
	t.Parallel()
	s := newStory(t, throttle.Settings{MaxConcurrent: 1, NoProgressAfter: -1})
	o := New(Options{Log: discard(), Events: &s.heard, Nodes: func() int { return 1 }})
	s.joins("holder").TryStart(s.now)
	waits := s.joins("waits")
	waits.Wait(s.now)
	s.limiter.Drain()
	s.now = s.now.Add(shortWait)
	o.LookAtWaiting(s.now, s.limiter.Snapshot(s.now))
	require.Len(t, o.pods.written, 1)
	waits.End(s.now, reasons.Deleted)
	for _, e := range s.limiter.Drain() {
		o.Report(ShadowEvent{Pod: Pod{e.Ticket.UID(), e.Ticket.Name()}, Event: e, HeldBy: reasons.Concurrency})
	}
	assert.Empty(t, o.pods.written)
}

// The observer may look between the admission of a pod and its report.
func TestAnAdmissionIsReportedAfterALookThatDoesNotSeeThePodWait(t *testing.T) {
	t.Parallel()
	s := newStory(t, throttle.Settings{MaxConcurrent: 1, NoProgressAfter: -1})
	holder := s.joins("holder")
	holder.Wait(s.now)
	s.joins("long").Wait(s.now)
	require.Len(t, s.passes(shortWait+lookEvery), 1)
	s.joins("behind").Wait(s.now)
	holder.End(s.now, reasons.Ready)
	s.now = s.now.Add(lookEvery)
	s.limiter.Advance(s.now)
	s.events.look(s.now, &s.heard, s.limiter.Snapshot(s.now))
	assert.Contains(t, strings.Join(s.passes(0), "\n"), "StartAdmitted default/long")
}
