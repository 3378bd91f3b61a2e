package wholefile

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAFileIsReplacedWhole(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, Write(path, []byte("one"), 0o600))
	before, err := os.Open(path)
	require.NoError(t, err)
	defer before.Close()
	require.NoError(t, Write(path, []byte("another"), 0o755))

	old := make([]byte, 10)
	n, err := before.Read(old)
	require.NoError(t, err)
	assert.Equal(t, "one", string(old[:n]), "an open file keeps the old content")
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "another", string(content))
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o755), info.Mode())
}

func TestAFailureLeavesAllAsItWas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder := filepath.Join(dir, "folder")
	require.NoError(t, os.Mkdir(folder, 0o700))
	require.ErrorIs(t, Write(folder, []byte("one"), 0o600), os.ErrExist)
	require.ErrorIs(t, Write(filepath.Join(dir, "missing", "file"), nil, 0o600), os.ErrNotExist)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "no other file is left")
}

// program writes a program and returns its path.
func program(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestInstallWritesOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	target := filepath.Join(t.TempDir(), "file")
	install := func(content string) bool {
		wrote, err := Install(program(t, content), target)
		require.NoError(t, err)
		info, err := os.Lstat(target)
		require.NoError(t, err)
		assert.Equal(t, fs.FileMode(0o755), info.Mode(), "no link: another user may own the file behind it")
		return wrote
	}
	assert.True(t, install("one"), "the file is missing")
	first, err := os.Stat(target)
	require.NoError(t, err)
	assert.False(t, install("one"), "the file is equal")
	again, err := os.Stat(target)
	require.NoError(t, err)
	assert.True(t, os.SameFile(first, again))

	// A process that runs the old file keeps it.
	running, err := os.Open(target)
	require.NoError(t, err)
	defer running.Close()
	assert.True(t, install("two"), "the content differs")
	old := make([]byte, 3)
	_, err = running.Read(old)
	require.NoError(t, err)
	assert.Equal(t, "one", string(old))

	require.NoError(t, os.Chmod(target, 0o777))
	assert.True(t, install("two"), "the mode differs")
	require.NoError(t, os.Rename(target, target+".2"))
	require.NoError(t, os.Symlink(target+".2", target))
	assert.True(t, install("two"), "a symbolic link")
	require.NoError(t, os.Remove(target+".2"))
	entries, err := os.ReadDir(filepath.Dir(target))
	require.NoError(t, err)
	assert.Len(t, entries, 1, "no other file is left beside the program")
}

func TestAFailedInstallLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := Install(filepath.Join(dir, "missing"), filepath.Join(dir, "file"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Install(program(t, ""), filepath.Join(dir, "file"))
	require.ErrorContains(t, err, "is empty")

	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	_, err = Install(program(t, "one"), filepath.Join(dir, "folder"))
	require.ErrorIs(t, err, os.ErrExist)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1)
}

func TestEnsureWritesOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	ensure := func(content string, mode os.FileMode) bool {
		wrote, err := Ensure(path, []byte(content), mode)
		require.NoError(t, err)
		info, err := os.Lstat(path)
		require.NoError(t, err)
		assert.Equal(t, mode, info.Mode())
		return wrote
	}
	assert.True(t, ensure("one", 0o755), "the file is missing")
	assert.False(t, ensure("one", 0o755), "the file is equal")
	assert.True(t, ensure("two", 0o755), "the content differs")
	assert.True(t, ensure("two", 0o700), "the mode differs")
	require.NoError(t, os.Rename(path, path+".2"))
	require.NoError(t, os.Symlink(path+".2", path))
	assert.True(t, ensure("two", 0o700), "a symbolic link")
}

func TestEnsureTakesAFileFromAnotherUser(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, Write(path, []byte("one"), 0o755))
	err := os.Chown(path, 1234, 1234)
	if os.Geteuid() != 0 {
		require.ErrorIs(t, err, fs.ErrPermission, "only root can give files away")
		return
	}
	require.NoError(t, err)
	wrote, err := Ensure(path, []byte("one"), 0o755)
	require.NoError(t, err)
	assert.True(t, wrote)
}

func TestRemoveTakesUnfinishedFilesToo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, name := range []string{"file", ".file.123", "another", ".another.123"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	require.NoError(t, Remove(path))
	require.NoError(t, Remove(path), "there is no such file")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 2, "the files of others stay")

	require.NoError(t, os.MkdirAll(filepath.Join(path, "inside"), 0o700))
	require.Error(t, Remove(path), "a folder that is not empty")
}
