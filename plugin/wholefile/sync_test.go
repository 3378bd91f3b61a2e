package wholefile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/wholefile"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/wholefile/wholefiletest"
)

// Else a power cut after the rename would leave an empty file.
func TestTheContentIsOnDiskBeforeTheFileIsReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	holds := func(want string) {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, want, string(content))
	}
	require.ErrorIs(t, wholefiletest.WithoutSync(func() error { return wholefile.Write(path, []byte("new"), 0o600) }), unix.EIO)
	holds("old")
	require.NoError(t, wholefiletest.WithoutSync(func() error { return wholefile.WriteSoon(path, []byte("new"), 0o600) }), "it does not wait for the disk")
	holds("new")
}
