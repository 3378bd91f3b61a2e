package usage

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestAStallBeginsWithTheFirstQuietWindow(t *testing.T) {
	t.Parallel()
	const window = 5 * time.Second
	begin := time.Unix(1000, 0)
	s, sign := Stalls{StallOptions: StallOptions{Cores: 0.1, InLine: 0.5, Bytes: 1000}}, &stallPod{}
	now := usage{at: begin, inLine: map[string]float64{}, moved: map[string]float64{}}
	step := func(cpu, inLine, moved float64) time.Time {
		now.at = now.at.Add(time.Second)
		now.cpu += cpu
		now.inLine = map[string]float64{"thread": now.inLine["thread"] + inLine}
		now.moved = map[string]float64{"process": now.moved["process"] + moved}
		return s.judge(sign, now, window)
	}
	steps := func(n int, cpu, inLine, moved float64) (since time.Time) {
		for range n {
			since = step(cpu, inLine, moved)
		}
		return since
	}
	assert.Zero(t, s.judge(sign, now, window))
	assert.Zero(t, steps(4, 0, 0, 0), "nobody knows yet")
	assert.Equal(t, begin, step(0, 0, 0), "since the window began")
	assert.Equal(t, begin, steps(60, 0.03, 0.3, 500), "as probes use on a busy node")
	assert.Zero(t, step(1, 0, 0), "it computes")
	assert.Zero(t, steps(4, 0, 0, 0), "it did within the window")
	assert.Equal(t, now.at.Add(-4*time.Second), step(0, 0, 0), "since it computed last")
	assert.Zero(t, steps(3, 0.02, 0.98, 0), "it would compute if it could")
	assert.NotZero(t, steps(5, 0, 0, 0))
	assert.Zero(t, step(0, 0, 5001), "it reads")
	assert.NotZero(t, steps(5, 0, 0, 0))
	assert.Zero(t, steps(5, 0.1, 0, 0), "slow is not stalled")
}
