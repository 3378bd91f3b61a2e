package lab

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

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
