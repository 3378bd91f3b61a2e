package plugin

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheDaemonInstallsItsHook(t *testing.T) {
	t.Parallel()
	log, entries := test.NewNullLogger()
	dir := t.TempDir()
	beside := filepath.Join(dir, HookName)
	o := Options{Programs: dir, GatePath: filepath.Join(dir, "opt", "bin", "hook"), Log: log}
	said := func() string {
		if e := entries.LastEntry(); e != nil {
			entries.Reset()
			return e.Message
		}
		return ""
	}
	require.NoError(t, o.installHook())
	assert.Empty(t, said(), "there is no hook beside the program, so an administrator installs it")
	assert.NoDirExists(t, filepath.Dir(o.GatePath))

	require.NoError(t, os.WriteFile(beside, []byte("one"), 0o600))
	require.NoError(t, o.installHook())
	assert.Equal(t, "installed the hook of the gate", said())
	info, err := os.Stat(o.GatePath)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o755), info.Mode())
	require.NoError(t, o.installHook())
	assert.Empty(t, said(), "it is up to date")

	require.NoError(t, os.WriteFile(beside, nil, 0o600))
	require.ErrorContains(t, o.installHook(), "is empty")
	content, err := os.ReadFile(o.GatePath)
	require.NoError(t, err)
	assert.Equal(t, "one", string(content), "the hook that was there stays")

	o.GatePath = beside
	require.NoError(t, o.installHook())
	assert.Empty(t, said(), "the hook is used where it is")
	o.GatePath = ""
	require.NoError(t, o.installHook())
	assert.Empty(t, said(), "no gate")
}
