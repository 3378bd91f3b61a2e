package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCNIInstallsAndRemovesTheWaitingRoom(t *testing.T) {
	t.Parallel()
	confs, plugins := t.TempDir(), t.TempDir()
	folders := []string{"--cni-conf-dir", confs, "--cni-bin-dir", plugins}
	from := file(t, "#!/bin/true")
	code, _, stderr := call(t, append([]string{"cni", "install", "--from", from}, folders...)...)
	assert.Equal(t, exitFailure, code)
	assert.Contains(t, stderr, "there is no CNI configuration yet")

	net := filepath.Join(confs, "10-net.conflist")
	require.NoError(t, os.WriteFile(net, []byte(`{"cniVersion":"1.0.0","name":"net","plugins":[{"type":"ptp"}]}`), 0o600))
	code, stdout, _ := call(t, append([]string{"cni", "install", "--from", from}, folders...)...)
	assert.Zero(t, code)
	ours := filepath.Join(confs, "00-pod-pacemaker.conflist")
	assert.Equal(t, "installed "+ours+", a copy of 10-net.conflist\n", stdout)
	assert.FileExists(t, ours)
	assert.FileExists(t, filepath.Join(plugins, "pacemaker-cni"))

	code, stdout, _ = call(t, append([]string{"cni", "remove"}, folders...)...)
	assert.Zero(t, code)
	assert.Equal(t, "removed\n", stdout)
	assert.NoFileExists(t, ours)
	assert.FileExists(t, net)

	code, _, stderr = call(t, "cni", "paint")
	assert.Equal(t, exitInvalid, code)
	assert.Contains(t, stderr, "neither install nor remove")
}
