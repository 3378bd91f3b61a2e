package plugin

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
)

// A pod may be deleted after a process of it left the waiting room with a note, and before the next came.
func TestNotesOfTheRoomThatNobodyTakesAreRemoved(t *testing.T) {
	t.Parallel()
	o := Options{RunDir: t.TempDir(), GateTimeout: 100 * time.Second}
	removeNotes(o, time.Now()) // no note was ever left
	folder, now := filepath.Join(o.RunDir, wire.NoteFolder), time.Now()
	require.NoError(t, os.MkdirAll(folder, 0o700))
	for name, age := range map[string]time.Duration{"old": 14 * time.Minute, "young": 13 * time.Minute, wire.GoneFile: time.Hour} {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.NoError(t, os.Chtimes(path, now.Add(-age), now.Add(-age)))
	}
	removeNotes(o, now)
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, left, 2)
	assert.Equal(t, wire.GoneFile, left[0].Name(), "no daemon answers yet")
	assert.Equal(t, "young", left[1].Name())
}
