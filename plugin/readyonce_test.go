package plugin

import (
	"os"
	"path/filepath"
	"testing"

	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/starts"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/rundir"
)

// A daemon that is restarted knows what was ready in this boot of the node, and nothing of an earlier one.
func TestWhatWasReadyIsKnownUntilTheNextBoot(t *testing.T) {
	t.Parallel()
	proc := t.TempDir()
	boots := func(id string) {
		file := filepath.Join(proc, "sys/kernel/random/boot_id")
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(id), 0o600))
	}
	log, logged := logtest.NewNullLogger()
	o := Options{RunDir: t.TempDir(), ProcRoot: proc, Log: log}
	boots("first\n")
	assert.Empty(t, o.readyOnce(o.boot()))
	files := o.files()
	assert.Contains(t, files, o.readyPath())
	assert.Equal(t, rundir.LockPath(o.RunDir), files[len(files)-1], "the lock goes last")
	once := starts.ReadyOnce{Node: "uid", Entries: []string{"kube-system/agent"}}
	o.keepReady(o.boot(), once)
	assert.Equal(t, once, o.readyOnce(o.boot()))
	boots("second\n")
	assert.Empty(t, o.readyOnce(o.boot()))
	require.Empty(t, logged.AllEntries())

	require.NoError(t, os.RemoveAll(filepath.Join(proc, "sys")))
	boot := o.boot()
	assert.Len(t, logged.AllEntries(), 1)
	o.keepReady(boot, once)
	assert.Empty(t, o.readyOnce(boot), "the boot is not known")
	assert.Len(t, logged.AllEntries(), 1, "it is logged once")
	require.NoError(t, os.WriteFile(o.readyPath(), []byte("{"), 0o600))
	boots("first\n")
	assert.Empty(t, o.readyOnce(o.boot()))
	assert.Len(t, logged.AllEntries(), 2)
	o.RunDir = "/nowhere"
	o.keepReady(o.boot(), once)
	assert.Len(t, logged.AllEntries(), 3)
}
