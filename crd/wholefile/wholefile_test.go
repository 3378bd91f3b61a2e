package wholefile

import (
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
	assert.Equal(t, "one", string(old[:n]), "who has it open goes on with what it was")
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
	assert.Len(t, entries, 1, "nothing is left beside it")
}
