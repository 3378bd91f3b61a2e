package usage

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestQuiet(t *testing.T) {
	t.Parallel()
	s, m := NewQuiet(Roots{Proc: "/proc"}, DefaultQuiet()), &quietPod{}
	now := time.Unix(0, 0)
	used := 0.0
	step := func(d time.Duration, cores float64) bool {
		now = now.Add(d)
		used += cores * d.Seconds()
		return s.judge(m, usage{at: now, cpu: used})
	}
	assert.False(t, s.judge(m, usage{at: now, cpu: used}), "nothing to compare with")
	assert.False(t, step(time.Second, 0), "the window is not full")
	assert.True(t, step(time.Second, 0))
	assert.False(t, step(time.Second, 1), "half a core over the window")
	assert.False(t, step(time.Second, 0), "the busy second is still in it")
	assert.True(t, step(time.Second, 0.1))
	assert.True(t, step(time.Hour, 0.19), "after a gap")
	assert.False(t, step(2*time.Second, 0.21))
	m = &quietPod{}
	assert.False(t, step(time.Hour, 0), "nothing is known of it any more")
}

func TestAPodThatCannotBeMeasuredIsQuietAndSaysSoOnce(t *testing.T) {
	t.Parallel()
	q := NewQuiet(Roots{Proc: "/nowhere", Cgroup: "/nowhere"}, DefaultQuiet())
	place := Place{Containers: []Container{{PID: 7}}}
	quiet, blind := q.Measure(time.Unix(0, 0), "pod", place)
	assert.True(t, quiet)
	require.Error(t, blind)
	quiet, blind = q.Measure(time.Unix(1, 0), "pod", place)
	assert.True(t, quiet)
	require.NoError(t, blind)
	q.Forget("pod")
	_, blind = q.Measure(time.Unix(2, 0), "pod", place)
	require.Error(t, blind, "the next start of the pod")
}
