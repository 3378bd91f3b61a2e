package adaptive_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
)

// settled gives a node with 16 cores, on which the law has settled at 27 starts that
// keep a core busy each, and the change of the samples that does so.
func settled() (*plant, func(*adaptive.Sample)) {
	burning := func(s *adaptive.Sample) {
		load := float64(s.Starting) / 16
		s.CPU, s.CPUPressure = 100*min(1, load), 100*max(0, min(1, load-1))
	}
	p := newPlant(adaptive.Settings{Cores: 16})
	p.feed(8, func(s *adaptive.Sample) { s.Starting, s.Waiting = 0, false })
	p.feed(4*60, burning)
	return p, burning
}

// and gives a change that makes both.
func and(a, b func(*adaptive.Sample)) func(*adaptive.Sample) {
	return func(s *adaptive.Sample) {
		a(s)
		b(s)
	}
}

func TestHalvesAfterALossAndGrowsByOneWithEachRound(t *testing.T) {
	t.Parallel()
	p, burning := settled()
	assert.InDelta(t, 27, p.Limit(), 1, p.Why())
	lost := p.now.Add(-20 * time.Second)
	losing := and(burning, func(s *adaptive.Sample) { s.Lost, s.Queued = lost, true })
	p.feed(1, losing)
	halved := p.Limit()
	assert.InDelta(t, 13, halved, 1, p.Why())

	lost = lost.Add(time.Second) // another, admitted before
	p.feed(4*10, losing)
	assert.Equal(t, halved, p.Limit(), p.Why())
	p.feed(1, and(losing, func(s *adaptive.Sample) { s.Made = halved }))
	p.feed(4*10, and(losing, func(s *adaptive.Sample) { s.Made = 2*halved + 2 }))
	assert.Equal(t, halved+2, p.Limit(), p.Why())

	full := and(losing, func(s *adaptive.Sample) { s.CPU, s.CPUPressure, s.Made = 100, 75, 2*halved+2 })
	p.feed(8, full)
	lost = p.now.Add(-5 * time.Second) // admitted since
	p.feed(1, full)
	assert.InDelta(t, halved/2+1, p.Limit(), 1, p.Why())
}

func TestALossIsForgottenAMinuteAfterTheHerd(t *testing.T) {
	t.Parallel()
	p, burning := settled()
	lost := p.now.Add(-20 * time.Second)
	p.feed(1, and(burning, func(s *adaptive.Sample) { s.Lost, s.Queued = lost, true }))
	over := func(s *adaptive.Sample) { s.Starting, s.Waiting, s.Lost = 0, false, lost }
	p.feed(4*59, over)
	assert.InDelta(t, 13, p.Limit(), 1, p.Why())
	p.feed(8, over)
	assert.Equal(t, 27, p.Limit(), p.Why())
}

func TestWhatBreaksOffOnANodeWithRoomIsNoLoss(t *testing.T) {
	t.Parallel()
	p := newPlant(adaptive.Settings{Cores: 16, Max: 30})
	light := func(s *adaptive.Sample) { s.CPU, s.Queued = 20, true }
	p.feed(4*30, light)
	lost := p.now.Add(-20 * time.Second)
	p.feed(4, and(light, func(s *adaptive.Sample) { s.Lost = lost }))
	assert.Equal(t, 30, p.Limit(), p.Why())
}

func TestALossFromBeforeSaysNothing(t *testing.T) {
	t.Parallel()
	p := newPlant(adaptive.Settings{Cores: 16})
	lost := p.now.Add(-time.Hour)
	p.feed(1, func(s *adaptive.Sample) { s.CPU, s.CPUPressure, s.Lost = 100, 60, lost })
	assert.Equal(t, 27, p.Limit(), p.Why())
}
