package wholefile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Without it, a power cut after the rename leaves an empty file.
func TestTheContentIsOnDiskBeforeTheFileIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, Write(path, []byte("old"), 0o600))
	synced := ""
	syncFile = func(f *os.File) error {
		content, err := os.ReadFile(f.Name())
		require.NoError(t, err)
		synced = string(content)
		before, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, "old", string(before))
		return nil
	}
	t.Cleanup(func() { syncFile = (*os.File).Sync })
	require.NoError(t, Write(path, []byte("new"), 0o600))
	assert.Equal(t, "new", synced)
}
