package lab

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

func TestRuntimeConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := &Runtime{Run: Run{Dir: dir}, Socket: dir + "/c.sock", NRISocket: dir + "/n.sock"}
	plugins := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(plugins, "ptp"), nil, 0o755))
	path, err := writeRuntimeConfig(r, Binaries{Runc: "/x/runc", CNIDir: plugins}, "[extra]\n")
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, "cni-bin", "ptp"))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, want := range []string{`BinaryName = "/x/runc"`, `socket_path = "` + r.NRISocket + `"`, `sandbox_image = "` + PauseImage + `"`} {
		require.Contains(t, string(text), want)
	}
	require.True(t, strings.HasSuffix(string(text), "[extra]\n"))
	require.NotContains(t, string(text), "<no value>")
	cni, err := os.ReadFile(filepath.Join(dir, "cni", "10-lab.conflist"))
	require.NoError(t, err)
	require.True(t, json.Valid(cni))
}

func TestCallersKubeletConfigComesLast(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := &Cluster{Runtime: &Runtime{Run: Run{Dir: dir, Cgroup: "/run-1"}, Socket: "/c.sock"}}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "kubelet"), 0o755))
	path, err := c.writeKubeletConfig(filepath.Dir(c.KubeletConfigFile()),
		func(config map[string]any) { config["maxPods"] = 4 }, nil, func(config map[string]any) { config["maxPods"] = 5 })
	require.NoError(t, err)
	require.Equal(t, c.KubeletConfigFile(), path)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var config map[string]any
	require.NoError(t, yaml.Unmarshal(text, &config))
	require.InDelta(t, 5, config["maxPods"], 0)
	require.Equal(t, "/run-1", config["cgroupRoot"])
	require.Equal(t, "unix:///c.sock", config["containerRuntimeEndpoint"])
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	c, err := newCredentials(t.TempDir(), admin, scheduler)
	require.NoError(t, err)
	tokens, err := os.ReadFile(c.path("tokens.csv"))
	require.NoError(t, err)
	require.Contains(t, string(tokens), c.tokens[admin.name]+",admin,admin,\"system:masters\"\n")
	require.NotEqual(t, c.tokens[admin.name], c.tokens[scheduler.name])
	path, err := c.kubeconfig("admin", admin, "127.0.0.1:1")
	require.NoError(t, err)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), "https://127.0.0.1:1")
	require.Contains(t, string(text), c.tokens[admin.name])
}
