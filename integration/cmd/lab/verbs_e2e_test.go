//go:build e2e

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
)

// up starts a cluster and says how to reach it, a second up says the same, and down leaves nothing
// behind.
func TestUpAndDown(t *testing.T) {
	parent, err := os.MkdirTemp(os.TempDir(), "ppl")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(parent)) })
	t.Setenv("TMPDIR", parent) // apart from a cluster that may be up already
	verb := func(args ...string) string {
		var out, problems bytes.Buffer
		require.Equal(t, exitOK, run(t.Context(), args, &out, &problems), "%s", &problems)
		t.Log(problems.String())
		return out.String()
	}
	exports := verb("up", "--label", "example.com/kind=test")
	standing, err := lab.Detached("")
	require.NoError(t, err)
	require.Len(t, standing, 1)
	file := regexp.MustCompile(`export KUBECONFIG=(\S+)`).FindStringSubmatch(exports)
	require.NotNil(t, file, exports)
	require.Equal(t, standing[0].Kubeconfig, file[1])
	require.FileExists(t, file[1])
	values := regexp.MustCompile(`export VALUES=(\S+)`).FindStringSubmatch(exports)
	require.NotNil(t, values, exports)
	var own struct {
		Containerd    struct{ State string }
		KubeletConfig []string
		WaitingRoom   struct{ ConfDir, BinDir string }
	}
	text, err := os.ReadFile(values[1])
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &own))
	require.DirExists(t, own.Containerd.State)
	require.Len(t, own.KubeletConfig, 1)
	require.FileExists(t, own.KubeletConfig[0])
	require.FileExists(t, filepath.Join(own.WaitingRoom.ConfDir, "10-lab.conflist"))
	require.FileExists(t, filepath.Join(own.WaitingRoom.BinDir, "ptp"))
	herd := regexp.MustCompile(`HERD=(\S+)`).FindStringSubmatch(exports)
	require.NotNil(t, herd, exports)
	require.FileExists(t, herd[1])
	listed, err := exec.CommandContext(t.Context(), standing[0].CTR, "--address", standing[0].Containerd, "--namespace", "k8s.io", "images", "list", "--quiet").CombinedOutput()
	require.NoError(t, err, "%s", listed)
	require.Contains(t, string(listed), imageRepository+":"+imageTag)
	require.Equal(t, exports, verb("up"))
	require.Equal(t, exports, verb("status"))

	verb("down")
	left, err := lab.Remains(standing[0].Run)
	require.NoError(t, err)
	require.Empty(t, left)
	entries, err := os.ReadDir(parent)
	require.NoError(t, err)
	require.Empty(t, entries)
}
