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
	s, m := NewStartMeter(Roots{Proc: "/proc"}, DefaultStalls(), DefaultQuiet()), &start{}
	now := time.Unix(0, 0)
	used := 0.0
	step := func(d time.Duration, cores float64) bool {
		now = now.Add(d)
		used += cores * d.Seconds()
		m.add(usage{at: now, cpu: used})
		s.pods["uid"] = m
		return s.Quiet("uid")
	}
	assert.False(t, step(0, 0), "no earlier reading exists")
	assert.False(t, step(time.Second, 0), "the window is not full")
	assert.True(t, step(time.Second, 0))
	assert.False(t, step(time.Second, 1), "half a core over the window")
	assert.False(t, step(time.Second, 0), "the busy second is still in the window")
	assert.True(t, step(time.Second, 0.1))
	assert.True(t, step(time.Hour, 0.19), "after a gap")
	assert.False(t, step(2*time.Second, 0.21))
	m = &start{}
	assert.False(t, step(time.Hour, 0), "the earlier readings are forgotten")
}

func TestAPodThatCannotBeMeasuredIsQuietAndSaysSoOnce(t *testing.T) {
	t.Parallel()
	s := NewStartMeter(Roots{Proc: "/nowhere", Cgroup: "/nowhere"}, DefaultStalls(), DefaultQuiet())
	target := Target{PIDs: []int{7}}
	assert.False(t, s.Quiet("pod"), "the pod was not measured yet")
	require.Error(t, s.Measure(time.Unix(0, 0), "pod", target))
	assert.True(t, s.Quiet("pod"))
	require.NoError(t, s.Measure(time.Unix(1, 0), "pod", target))
	assert.True(t, s.Quiet("pod"))
	s.Forget("pod")
	require.Error(t, s.Measure(time.Unix(2, 0), "pod", target), "the next start of the pod reports the fault again")
}

// The kernel may hide from the daemon how much other users' processes read and write.
func TestAPodWithoutDiskFiguresIsJudgedByItsCPUUse(t *testing.T) {
	t.Parallel()
	proc := fakeProc{t, t.TempDir()}
	proc.process(7, 100, 1, "")
	require.NoError(t, os.Remove(filepath.Join(proc.dir, "7", "io")))
	s := NewStartMeter(Roots{Proc: proc.dir, Cgroup: "/nowhere"}, DefaultStalls(), DefaultQuiet())
	target := Target{PIDs: []int{7}}
	require.ErrorContains(t, s.Measure(time.Unix(0, 0), "pod", target), "I/O of process 7")
	assert.False(t, s.Quiet("pod"), "the window is not full")
	for i := range int64(10) {
		require.NoError(t, s.Measure(time.Unix(1+i, 0), "pod", target))
	}
	assert.True(t, s.Quiet("pod"))
	assert.Zero(t, s.StalledSince("pod", time.Second), "the pod may be reading")
	_, known := s.Took("pod")
	assert.False(t, known)
}
