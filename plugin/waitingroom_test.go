package plugin

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
)

// A process that left the room without a daemon says since when there is none.
func TestADaemonThatAnswersIsNotGone(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	n.stop()
	file := filepath.Join(n.options.RunDir, wire.NoteFolder, wire.GoneFile)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	n.startDaemon()
	n.eventually("the file is gone", func() bool {
		_, err := os.Stat(file)
		return os.IsNotExist(err)
	})
}
