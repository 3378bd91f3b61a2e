package lab

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
