package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func hook(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), gateName)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestInstallAndReplace(t *testing.T) {
	t.Parallel()
	target := filepath.Join(t.TempDir(), "opt", "bin", gateName)

	done, err := install(hook(t, "one"), target)
	require.NoError(t, err)
	assert.Equal(t, "installed "+target, done)
	first, err := os.Stat(target)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o755), first.Mode())

	done, err = install(hook(t, "one"), target)
	require.NoError(t, err)
	assert.Equal(t, target+" is up to date", done)
	again, err := os.Stat(target)
	require.NoError(t, err)
	assert.True(t, os.SameFile(first, again), "the same hook must not be written again")

	// A process that runs the old file keeps it.
	running, err := os.Open(target)
	require.NoError(t, err)
	defer running.Close()
	_, err = install(hook(t, "two"), target)
	require.NoError(t, err)
	old := make([]byte, 3)
	_, err = running.Read(old)
	require.NoError(t, err)
	assert.Equal(t, "one", string(old))
	content, err := os.ReadFile(target)
	require.NoError(t, err)
	assert.Equal(t, "two", string(content))

	entries, err := os.ReadDir(filepath.Dir(target))
	require.NoError(t, err)
	assert.Len(t, entries, 1, "no other file is left beside the hook")
}

func TestInstallRepairsModeAndLinks(t *testing.T) {
	t.Parallel()
	target := filepath.Join(t.TempDir(), gateName)
	require.NoError(t, os.WriteFile(target, []byte("one"), 0o600))
	require.NoError(t, os.Chmod(target, 0o777))
	_, err := install(hook(t, "one"), target)
	require.NoError(t, err)
	info, err := os.Lstat(target)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o755), info.Mode())

	elsewhere := hook(t, "one")
	link := filepath.Join(t.TempDir(), gateName)
	require.NoError(t, os.Symlink(elsewhere, link))
	_, err = install(hook(t, "one"), link)
	require.NoError(t, err)
	info, err = os.Lstat(link)
	require.NoError(t, err)
	assert.True(t, info.Mode().IsRegular(), "a link to a file that another user may own must be replaced")
}

func TestAFailedInstallLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := install(filepath.Join(dir, "missing"), filepath.Join(dir, "bin", gateName))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = install(hook(t, ""), filepath.Join(dir, "bin", gateName))
	require.ErrorContains(t, err, "is empty")

	require.NoError(t, os.Mkdir(filepath.Join(dir, gateName), 0o700))
	_, err = install(hook(t, "one"), filepath.Join(dir, gateName))
	require.ErrorIs(t, err, os.ErrExist)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1)
}

// Only root may install the hook, because runc runs it as root. As root, the command works from end to end.
func TestInstallGateCommand(t *testing.T) {
	t.Parallel()
	beside, err := programBeside(gateName)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(beside, []byte("one"), 0o600))
	t.Cleanup(func() { assert.NoError(t, os.Remove(beside)) })
	to := filepath.Join(t.TempDir(), "bin")
	code, stdout, stderr := call(t, "install-gate", "--to", to)
	if os.Geteuid() != 0 {
		assert.Equal(t, exitFailure, code)
		assert.Contains(t, stderr, "install-gate needs root")
		return
	}
	assert.Zero(t, code, stderr)
	assert.Equal(t, "installed "+to+"/pacemaker-gate\n", stdout)
}

func TestTheDefaultGateIsBesideTheProgram(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	require.NoError(t, err)
	beside, err := programBeside(gateName)
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(filepath.Dir(program), "pacemaker-gate"), beside)
}
