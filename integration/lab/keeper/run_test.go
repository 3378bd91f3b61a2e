package keeper

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// parentDir returns a folder whose path leaves room for unix sockets.
func parentDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "ppl")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func TestRunAt(t *testing.T) {
	t.Parallel()
	run, err := runAt("/tmp/pod-pacemaker-lab-0123abcd")
	require.NoError(t, err)
	require.Equal(t, Run{ID: "0123abcd", Dir: "/tmp/pod-pacemaker-lab-0123abcd", Cgroup: "/pod-pacemaker-lab-0123abcd"}, run)
}

// Only a run's folder may be taken for one, because Sweep deletes it.
func TestRunAtRefusesOtherFolders(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"/", "", "/tmp", "/tmp/pod-pacemaker-lab-", "/tmp/pod-pacemaker-lab-0123ABCD", "/tmp/pod-pacemaker-lab-01234567x", "/tmp/lab-01234567"} {
		_, err := runAt(dir)
		require.Error(t, err, dir)
	}
}

func TestARunIsAliveAsLongAsItsLockIsHeld(t *testing.T) {
	t.Parallel()
	parent := parentDir(t)
	run, lock, err := newRun(parent)
	require.NoError(t, err)
	alive, err := run.Alive()
	require.NoError(t, err)
	require.True(t, alive)
	require.DirExists(t, run.LogDir())
	runs, err := Runs(parent)
	require.NoError(t, err)
	require.Equal(t, []Run{run}, runs)

	require.NoError(t, lock.Close())
	alive, err = run.Alive()
	require.NoError(t, err)
	require.False(t, alive)
}

func TestRunsNeedRoomForSockets(t *testing.T) {
	t.Parallel()
	parent := filepath.Join(parentDir(t), strings.Repeat("x", maxDir))
	require.NoError(t, os.Mkdir(parent, 0o755))
	_, _, err := newRun(parent)
	require.ErrorContains(t, err, "set TMPDIR to a shorter folder")
}

func TestSweepRemovesDeadRunsOnly(t *testing.T) {
	t.Parallel()
	parent := parentDir(t)
	living, lock, err := newRun(parent)
	require.NoError(t, err)
	defer lock.Close()
	dead, deadLock, err := newRun(parent)
	require.NoError(t, err)
	require.NoError(t, deadLock.Close())
	other := filepath.Join(parent, "pod-pacemaker-lab-of-another-owner")
	require.NoError(t, os.Mkdir(other, 0o755))

	swept, err := Sweep(t.Context(), parent)
	require.NoError(t, err)
	require.Equal(t, []Run{dead}, swept)
	require.NoDirExists(t, dead.Dir)
	require.DirExists(t, living.Dir)
	require.DirExists(t, other)
}

func TestSweepRemovesFoldersWithoutAName(t *testing.T) {
	t.Parallel()
	parent := parentDir(t)
	old, fresh := filepath.Join(parent, "."+prefix+"old"), filepath.Join(parent, "."+prefix+"fresh")
	require.NoError(t, os.Mkdir(old, 0o755))
	require.NoError(t, os.Mkdir(fresh, 0o755))
	longAgo := time.Now().Add(-2 * youngest)
	require.NoError(t, os.Chtimes(old, longAgo, longAgo))
	_, err := Sweep(t.Context(), parent)
	require.NoError(t, err)
	require.NoDirExists(t, old)
	require.DirExists(t, fresh, "the folder may belong to a run that begins")
}

func TestRemainsNamesTheFolder(t *testing.T) {
	t.Parallel()
	run, lock, err := newRun(parentDir(t))
	require.NoError(t, err)
	require.NoError(t, lock.Close())
	left, err := Remains(run)
	require.NoError(t, err)
	require.Equal(t, []string{"folder " + run.Dir}, left)
	require.NoError(t, os.RemoveAll(run.Dir))
	left, err = Remains(run)
	require.NoError(t, err)
	require.Empty(t, left)
}
