package usage

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// On a busy node, a starving pod uses little CPU although its start is not over.
func TestTimeInLineCountsAsUse(t *testing.T) {
	t.Parallel()
	proc := t.TempDir()
	thread := func(id string) string { return filepath.Join(proc, "7", "task", id) }
	tell := func(id, schedstat string) {
		require.NoError(t, os.MkdirAll(thread(id), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(thread(id), "schedstat"), []byte(schedstat), 0o600))
	}
	m, s := NewMeter(Roots{Proc: proc}, DefaultStalls(), DefaultQuiet()), &Start{}
	now := time.Unix(0, 0)
	quiet := func() bool {
		s.add(usage{at: now, inLine: m.inLine(Target{PIDs: []int{7, 8, 0}})})
		now = now.Add(m.quiet.Window)
		return m.Quiet(s)
	}
	assert.False(t, quiet(), "the processes cannot be seen, and no earlier reading exists")
	assert.True(t, quiet(), "the time in line is unknown")

	tell("7", "50000000 0 9\n")
	tell("9", "0 100000000 1\n")
	assert.True(t, quiet(), "0.1 of 2 seconds")
	tell("7", "60000000 1500000000 10\n")
	tell("9", "0 400000000 3\n")
	assert.False(t, quiet(), "1.8 of 2 seconds")
	assert.True(t, quiet(), "the pod wants no CPU any more")
	require.NoError(t, os.RemoveAll(thread("7")))
	assert.True(t, quiet(), "an ended thread takes its time in line with it")
	tell("10", "0 1900000000 3\n")
	assert.False(t, quiet(), "a new thread stands in line")
}

// The threads of a runtime that only wake up wait too, beside the one that computes.
func TestTheThreadThatWaitsForLongestCounts(t *testing.T) {
	t.Parallel()
	before := usage{at: time.Unix(0, 0), cpu: 1, inLine: map[thread]float64{{7, 7}: 1}}
	now := usage{at: time.Unix(2, 0), cpu: 2, inLine: map[thread]float64{{7, 7}: 1.9, {7, 8}: 1, {9, 9}: 0.5}}
	assert.InDelta(t, 1+1+0.5, now.since(before).wanted(), 1e-9, "processes compute side by side")
	now.inLine[thread{7, 10}] = 20
	assert.InDelta(t, 1+2+0.5, now.since(before).wanted(), 1e-9, "a thread that was not seen before waited for no longer than that")
}
