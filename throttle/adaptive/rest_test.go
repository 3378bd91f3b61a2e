package adaptive_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
)

// herd is a herd of 100 of which one start makes it each second: each keeps the node
// busy for one.
type herd struct {
	plant   *plant
	samples int
	change  func(*adaptive.Sample)
}

func newHerd(change func(*adaptive.Sample)) *herd {
	h := &herd{plant: newPlant(adaptive.Settings{Cores: 2}), change: change}
	h.plant.feed(8, func(s *adaptive.Sample) { s.Starting, s.Waiting = 0, 0 })
	return h
}

// left is how many of it have not made it.
func (h *herd) left() int { return 100 - h.samples/4 }

func (h *herd) feed(samples int) {
	for range samples {
		h.samples++
		h.plant.feed(1, func(s *adaptive.Sample) {
			s.Made = h.samples / 4
			s.Starting = min(s.Starting, h.left())
			s.Queued = h.left() - s.Starting
			s.Waiting = s.Queued
			s.CPU, s.CPUPressure = 100, 70
			h.change(s)
		})
	}
}

// opens gives how many were left when all of them were let in, 0: they were not.
func (h *herd) opens(t *testing.T) int {
	t.Helper()
	for range 99 {
		h.feed(4)
		if strings.Contains(h.plant.Why(), "all that are left") {
			assert.GreaterOrEqual(t, h.plant.Limit(), h.left(), h.plant.Why())
			return h.left()
		}
		require.Less(t, h.plant.Limit(), 12, h.plant.Why())
	}
	return 0
}

func TestLetsInAtOnceWhatIsLeftWhereThatTakesNoLongerThanProbesBear(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*adaptive.Sample)
		left   int // of about a second each, and 12 to 14 % for the standard error
	}{
		"starts that burn":               {func(*adaptive.Sample) {}, 10},
		"a disk that somebody waits for": {func(s *adaptive.Sample) { s.CPU, s.IOPressure = 94, 100 }, 10},
		"a disk that nobody knows of":    {func(s *adaptive.Sample) { s.CPU, s.IOPressureKnown = 94, false }, 10},
		"CPUs that nobody knows of":      {func(s *adaptive.Sample) { s.CPU, s.CPUKnown = 10, false }, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.InDelta(t, c.left, newHerd(c.change).opens(t), 1)
		})
	}
}

func TestLetsTheRestInOnlyIfItIsHeld(t *testing.T) {
	t.Parallel()
	h := newHerd(func(s *adaptive.Sample) { s.Waiting = 0 }) // another limit holds them
	assert.Zero(t, h.opens(t))
}

// Who did not look does not know what the starts that made it meanwhile took.
func TestStartsThatMadeItWhileNobodyLookedTellNothingOfTheRest(t *testing.T) {
	t.Parallel()
	h := newHerd(func(*adaptive.Sample) {})
	h.feed(4)
	h.samples += 4 * 91
	h.plant.now = h.plant.now.Add(3 * window)
	h.feed(1)
	assert.NotContains(t, h.plant.Why(), "all that are left")
}
