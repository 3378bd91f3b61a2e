package plugin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestRefusalsAtTheSandboxAreBounded(t *testing.T) {
	t.Parallel()
	c := refusalCost{cores: 2}
	now := time.Unix(0, 0)
	n := 0
	for c.atSandbox(now, RefuseAuto) {
		c.add(now, atSandbox)
		n++
	}
	// 2 % of two cores for a minute is 2.4 CPU-seconds: 12 refusals of 0.2.
	assert.Equal(t, 12, n)
	assert.False(t, c.atSandbox(now.Add(refusalWindow-1), RefuseAuto))
	assert.True(t, c.atSandbox(now.Add(refusalWindow), RefuseAuto), "a minute later they count no more")
}

func TestRefusalPointCanBeFixed(t *testing.T) {
	t.Parallel()
	c := refusalCost{cores: 1}
	now := time.Unix(0, 0)
	for range 1000 {
		assert.True(t, c.atSandbox(now, RefuseSandbox))
		assert.False(t, c.atSandbox(now, RefuseContainer))
	}
}

func TestRefusalsAtTheContainerCostTheNodeToo(t *testing.T) {
	t.Parallel()
	c := refusalCost{cores: 1}
	now := time.Unix(0, 0)
	for range 24 { // of 50 ms: 1.2 CPU-seconds, 2 % of a core's minute
		assert.True(t, c.atSandbox(now, RefuseAuto))
		c.add(now, atContainer)
	}
	assert.False(t, c.atSandbox(now, RefuseAuto))
	share, measured := c.share(now)
	assert.InDelta(t, 0.02, share, 1e-9)
	assert.False(t, measured)
}

func TestRefusalsAreNotRememberedForEver(t *testing.T) {
	t.Parallel()
	c := refusalCost{cores: 1}
	now := time.Unix(0, 0)
	for range 1000 { // one in a second, and nobody asks what they cost
		c.add(now, atContainer)
		now = now.Add(time.Second)
	}
	assert.Equal(t, int(refusalWindow/time.Second), len(c.recent)) //nolint:testifylint // it would print all of them
}

// spender plays a runtime that spends so many times what it spent where it was measured.
type spender struct {
	c    *refusalCost
	now  time.Time
	cpu  time.Duration
	idle float64
}

func newSpender(idle float64) *spender {
	s := &spender{c: &refusalCost{cores: 1}, now: time.Unix(1000, 0), idle: idle}
	s.c.spending.usage = func() (time.Duration, bool) { return s.cpu, true }
	return s
}

// calls ends a call of the runtime.
func (s *spender) calls(handler string) {
	if s.c.spending.called(s.now, handler) {
		s.c.spending.sample(s.now)
	}
}

func TestAHandlerNeverReadsWhatTheRuntimeSpends(t *testing.T) {
	t.Parallel()
	s := newSpender(0)
	reads := 0
	s.c.spending.usage = func() (time.Duration, bool) { reads++; return 0, true }
	due := s.c.spending.called(s.now, "RunPodSandbox")
	assert.True(t, due)
	assert.False(t, s.c.spending.called(s.now, "RunPodSandbox"), "it was said")
	assert.Zero(t, reads)
	s.c.spending.sample(s.now)
	s.c.spending.sample(s.now)
	assert.Equal(t, 1, reads, "nobody called since")
}

func (s *spender) pass(d time.Duration) {
	s.now = s.now.Add(d)
	s.cpu += time.Duration(s.idle * float64(d))
}

// refuses refuses n sandboxes, one in two seconds.
func (s *spender) refuses(n int, factor float64) {
	for range n {
		for _, handler := range []string{"RunPodSandbox", "StopPodSandbox", "RemovePodSandbox"} {
			s.cpu += time.Duration(factor * float64(runtimeSpends[handler]))
			s.calls(handler)
		}
		s.pass(2 * time.Second)
	}
}

func TestTheCostOfRefusalsFollowsWhatTheRuntimeSpends(t *testing.T) {
	t.Parallel()
	for _, factor := range []float64{0.5, 1, 3} {
		s := newSpender(0.05)
		s.refuses(1, factor)
		s.pass(time.Minute) // idle
		s.refuses(200, factor)
		cost := s.c.add(s.now, atSandbox)
		assert.InEpsilon(t, factor*sandboxRefusalCPU.Seconds(), cost.Seconds(), 0.1, "%v times the cost", factor)
		_, measured := s.c.share(s.now)
		assert.True(t, measured)
	}
}

func TestADearerNodeRefusesLessAtTheSandbox(t *testing.T) {
	t.Parallel()
	s := newSpender(0)
	s.refuses(200, 4)
	n := 0
	for s.c.atSandbox(s.now, RefuseAuto) {
		s.c.add(s.now, atSandbox)
		n++
	}
	assert.Equal(t, 2, n, "of 0.8 s each, in 1.2 s")
}

func TestWhatElseTheRuntimeDoesIsNoCostOfRefusals(t *testing.T) {
	t.Parallel()
	s := newSpender(0)
	for range 200 {
		s.refuses(1, 1)
		for _, handler := range []string{"CreateContainer", "PostStartContainer"} { // a start
			s.cpu += runtimeSpends[handler]
			s.calls(handler)
		}
	}
	assert.InEpsilon(t, sandboxRefusalCPU.Seconds(), s.c.add(s.now, atSandbox).Seconds(), 0.1)
}

func TestARuntimeThatCannotBeSeenLeavesTheCostAsMeasuredElsewhere(t *testing.T) {
	t.Parallel()
	s := newSpender(0)
	s.c.spending.usage = func() (time.Duration, bool) { return 0, false }
	s.refuses(100, 5)
	assert.Equal(t, sandboxRefusalCPU, s.c.add(s.now, atSandbox))

	root := procRoot(t.TempDir())
	root.process(t, 100, 1, 7, "containerd")
	cpu, ok := cpuOf(string(root), processOfNode{pid: 100, started: 7})
	assert.True(t, ok)
	assert.Equal(t, time.Second, cpu, "10+20 ticks of its own, 30+40 of those it waited for")
	_, ok = cpuOf(string(root), processOfNode{pid: 100, started: 8})
	assert.False(t, ok, "another process with its number")
	_, ok = cpuOf(string(root), processOfNode{pid: 101})
	assert.False(t, ok)
}
