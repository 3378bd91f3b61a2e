package adaptive_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
)

// seenWaiting gives a node with so many cores on which the first starts of a herd only
// waited for a window, and then others stand behind them.
func seenWaiting(cores int) *plant {
	p := newPlant(adaptive.Settings{Cores: cores})
	light := func(s *adaptive.Sample) { s.CPU = 36 }
	p.feed(4*30, and(light, func(s *adaptive.Sample) { s.Starting, s.Waiting = 0, 0 }))
	p.feed(9, and(light, func(s *adaptive.Sample) { s.Waiting = 0 }))
	p.feed(1, light)
	return p
}

// That a few wait tells little of the next ones, that many do tells more.
func TestAFewStartsThatWaitAreNoProofOfTheNext(t *testing.T) {
	t.Parallel()
	small, large := seenWaiting(2), seenWaiting(32)
	assert.Equal(t, 6, small.Limit(), "2, and 3 for each core that is free: %s", small.Why())
	assert.Greater(t, large.Limit(), 16*small.Limit()*3/2, large.Why())
}

// The lasting load of a node may turn out to be less than it was when the herd began.
func TestANodeThatIsFullWhenAHerdBeginsDoesNotKeepItWaiting(t *testing.T) {
	t.Parallel()
	p := newPlant(adaptive.Settings{Cores: 2})
	p.feed(4*60, func(s *adaptive.Sample) { s.Starting, s.Waiting, s.CPU, s.CPUPressure = 0, 0, 100, 90 })
	assert.LessOrEqual(t, p.Limit(), 2, p.Why())
	p.feed(4*20, func(s *adaptive.Sample) { s.CPU = 60 })
	assert.Greater(t, p.Limit(), 10, p.Why())
}

// While a queue stands at every CPU, a start that ends makes no place for another, down to
// as many as would be right if each kept a core busy.
func TestWhileTheNodeIsOverfullNobodyTakesThePlaceOfOneThatEnds(t *testing.T) {
	t.Parallel()
	p := newPlant(adaptive.Settings{Cores: 16})
	p.feed(8, func(s *adaptive.Sample) { s.Starting, s.Waiting = 0, 0 })
	p.feed(12, func(s *adaptive.Sample) { s.CPU = 1 })
	starting := p.Limit()
	assert.Greater(t, starting, 40, p.Why())
	full := func(s *adaptive.Sample) { s.CPU, s.CPUPressure, s.Starting = 100, 95, starting }
	p.feed(8, full)
	assert.Equal(t, 27, p.Limit(), p.Why())
	assert.Contains(t, p.Why(), "nobody takes the place")
	starting = 20
	p.feed(1, full)
	assert.NotContains(t, p.Why(), "nobody takes the place")
}

// Where as many are left as would end soon, they are not let in on top of those that burn.
func TestTheRestIsNotLetInWhileTheNodeIsOverfull(t *testing.T) {
	t.Parallel()
	h := newHerd(func(s *adaptive.Sample) { s.CPUPressure = 95 })
	assert.Zero(t, h.opens(t))
}
