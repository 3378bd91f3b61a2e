package lab

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCapabilities(t *testing.T) {
	t.Parallel()
	const noSuch = 63
	has, err := hasCapability(noSuch)
	require.NoError(t, err)
	require.False(t, has)
}

func TestPickSnapshotterLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name, err := pickSnapshotter(dir)
	require.NoError(t, err)
	require.Contains(t, []string{"overlayfs", "native"}, name)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestCacheDir(t *testing.T) {
	t.Setenv("POD_PACEMAKER_CACHE", "/somewhere/cache")
	dir, err := CacheDir()
	require.NoError(t, err)
	require.Equal(t, "/somewhere/cache", dir)
	t.Setenv("POD_PACEMAKER_CACHE", "")
	t.Setenv("XDG_CACHE_HOME", "/xdg")
	dir, err = CacheDir()
	require.NoError(t, err)
	require.Equal(t, filepath.Join("/xdg", "pod-pacemaker"), dir)
}

func TestBuildsNeedACompiler(t *testing.T) {
	t.Setenv("CC", "no-such-compiler")
	err := preflightBuild()
	require.ErrorContains(t, err, "install gcc")
	require.ErrorIs(t, err, ErrHost)
	t.Setenv("PATH", t.TempDir())
	require.ErrorContains(t, preflightBuild(), "https://go.dev/dl")
}

func TestLabels(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a=1,b=2", labels(map[string]string{"b": "2", "a": "1"}))
}
