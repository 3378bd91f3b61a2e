package usage

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestQuiet(t *testing.T) {
	t.Parallel()
	m, s := NewMeter(Roots{Proc: "/proc"}, DefaultStalls(), DefaultQuiet()), &Start{}
	now := time.Unix(0, 0)
	used := 0.0
	step := func(d time.Duration, cores float64) bool {
		now = now.Add(d)
		used += cores * d.Seconds()
		s.add(usage{at: now, cpu: used})
		return m.Quiet(s)
	}
	assert.False(t, step(0, 0), "no earlier reading exists")
	assert.False(t, step(time.Second, 0), "the window is not full")
	assert.True(t, step(time.Second, 0))
	assert.False(t, step(time.Second, 1), "half a core over the window")
	assert.False(t, step(time.Second, 0), "the busy second is still in the window")
	assert.True(t, step(time.Second, 0.1))
	assert.True(t, step(time.Hour, 0.19), "after a gap")
	assert.False(t, step(2*time.Second, 0.21))
	s = &Start{}
	assert.False(t, step(time.Hour, 0), "the earlier readings are forgotten")
}

func TestAPodThatCannotBeMeasuredIsQuietAndSaysSoOnce(t *testing.T) {
	t.Parallel()
	m, s := NewMeter(Roots{Proc: "/nowhere", Cgroup: "/nowhere"}, DefaultStalls(), DefaultQuiet()), &Start{}
	target := Target{PIDs: []int{7}}
	assert.False(t, m.Quiet(s), "the pod was not measured yet")
	require.Error(t, m.Measure(time.Unix(0, 0), s, target))
	assert.True(t, m.Quiet(s))
	require.NoError(t, m.Measure(time.Unix(1, 0), s, target))
	assert.True(t, m.Quiet(s))
	s = &Start{}
	require.Error(t, m.Measure(time.Unix(2, 0), s, target), "the next start of the pod reports the fault again")
}

// The kernel may hide from the daemon how much other users' processes read and write.
func TestAPodWithoutDiskFiguresIsJudgedByItsCPUUse(t *testing.T) {
	t.Parallel()
	proc := fakeProc{t, t.TempDir()}
	proc.process(7, 100, 1, "")
	require.NoError(t, os.Remove(filepath.Join(proc.dir, "7", "io")))
	m, s := NewMeter(Roots{Proc: proc.dir, Cgroup: "/nowhere"}, DefaultStalls(), DefaultQuiet()), &Start{}
	target := Target{PIDs: []int{7}}
	require.ErrorContains(t, m.Measure(time.Unix(0, 0), s, target), "I/O of process 7")
	assert.False(t, m.Quiet(s), "the window is not full")
	for i := range int64(10) {
		require.NoError(t, m.Measure(time.Unix(1+i, 0), s, target))
	}
	assert.True(t, m.Quiet(s))
	assert.Zero(t, m.StalledSince(s, time.Second), "the pod may be reading")
	_, known := s.Took()
	assert.False(t, known)
}
