package plugin

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A pod that starves on a busy node uses little CPU without having started.
func TestTimeInLineCountsAsUse(t *testing.T) {
	t.Parallel()
	proc := t.TempDir()
	tell := func(thread, schedstat string) {
		dir := filepath.Join(proc, "7", "task", thread)
		require.NoError(t, os.MkdirAll(dir, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "schedstat"), []byte(schedstat), 0o600))
	}
	s := newSigns(Options{ProcRoot: proc})
	pod := []container{{pid: 7}, {pid: 8}, {}}
	assert.Zero(t, s.inLine(pod), "processes that cannot be seen")

	now := time.Unix(0, 0)
	tell("7", "50000000 0 9\n")
	tell("9", "0 0 0\n")
	assert.False(t, s.quiet(now, "pod", s.inLine(pod)))
	now = now.Add(s.window)
	tell("7", "60000000 1500000000 10\n")
	tell("9", "0 400000000 3\n")
	assert.InDelta(t, 1.9, s.inLine(pod), 1e-9)
	assert.False(t, s.quiet(now, "pod", s.inLine(pod)), "it stood in line nearly all the time")
	now = now.Add(s.window)
	assert.True(t, s.quiet(now, "pod", s.inLine(pod)), "it wants no CPU any more")

	require.NoError(t, os.RemoveAll(filepath.Join(proc, "7", "task", "7")))
	now = now.Add(s.window)
	assert.False(t, s.quiet(now, "pod", s.inLine(pod)), "a thread took its figures with it: measured anew")
}
