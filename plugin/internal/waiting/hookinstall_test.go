package waiting

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheGateInstallsItsHook(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	beside, hook := filepath.Join(dir, HookName), filepath.Join(dir, "opt", "bin", "hook")
	gate := func(path string) *Gate {
		g := aChooser(Options{Gate: GateOptions{Use: GateAuto, Path: path, Programs: dir}, ProcRoot: "/proc"}).Gate
		g.runsOn("2.4.2")
		return g
	}
	installs := func(path string) bool {
		installed, err := gate(path).Install()
		require.NoError(t, err)
		return installed
	}
	assert.False(t, installs(hook), "there is no hook beside the program, so an administrator installs it")
	assert.NoDirExists(t, filepath.Dir(hook))

	require.NoError(t, os.WriteFile(beside, []byte("one"), 0o600))
	assert.True(t, installs(hook))
	info, err := os.Stat(hook)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o755), info.Mode())
	assert.False(t, installs(hook), "it is up to date")

	g := gate(hook)
	assert.Equal(t, "the hook is being installed", g.Off(), "the hook on the host may be of another version")
	g.runsOn("1.7.28")
	assert.Contains(t, g.Off(), "containerd 1.7.28", "what does not pass is said first")
	g.runsOn("2.4.2")
	_, err = g.Install()
	require.NoError(t, err)
	assert.Empty(t, g.Off())
	require.NoError(t, os.WriteFile(beside, nil, 0o600))
	g = gate(hook)
	_, fault := g.Install()
	require.ErrorContains(t, fault, "is empty")
	content, err := os.ReadFile(hook)
	require.NoError(t, err)
	assert.Equal(t, "one", string(content), "the hook that was there stays")
	assert.Equal(t, "the hook cannot be installed: "+fault.Error()+"; the daemon tries again each minute", g.Off(),
		"the hook on the host may be of another version")

	require.NoError(t, os.WriteFile(beside, []byte("two"), 0o600))
	installsAgain := func() bool {
		installed, err := g.Install()
		require.NoError(t, err)
		return installed
	}
	assert.True(t, installsAgain())
	assert.Empty(t, g.Off(), "a later call succeeded")
	assert.False(t, installsAgain())
	require.NoError(t, os.Remove(hook))
	assert.True(t, installsAgain(), "another program has removed the hook")
	require.NoError(t, os.Chmod(hook, 0o600))
	assert.True(t, installsAgain(), "another program has changed its mode")
	require.NoError(t, os.WriteFile(hook, nil, 0o600))
	assert.True(t, installs(hook), "an empty hook is there when the daemon begins")
	assert.Empty(t, g.Off())

	assert.False(t, installs(beside), "the hook is used where it is")
	assert.False(t, installs(""), "no gate")
}
