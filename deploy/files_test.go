package deploy

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/coreos/go-systemd/v22/unit"
	"github.com/pelletier/go-toml/v2"
	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/stretchr/testify/require"
)

// readUnit returns the values of every option of the systemd unit, by the option's name.
func readUnit(t *testing.T) map[string][]string {
	t.Helper()
	file, err := os.Open("systemd/pod-pacemaker.service")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, file.Close()) })
	options, err := unit.DeserializeOptions(file)
	require.NoError(t, err)
	values := map[string][]string{}
	for _, option := range options {
		values[option.Name] = append(values[option.Name], option.Value)
	}
	return values
}

func TestUnitStandsBetweenContainerdAndKubelet(t *testing.T) {
	t.Parallel()
	values := readUnit(t)
	for name, want := range map[string]string{
		"After":                    "containerd.service",
		"Before":                   "kubelet.service",
		"Type":                     "notify",
		"RuntimeDirectory":         "pod-pacemaker",
		"StateDirectory":           "pod-pacemaker",
		"SyslogIdentifier":         "pod-pacemaker",
		"Restart":                  "always",
		"RestartPreventExitStatus": "64",
		"WatchdogSec":              "60",
		"CapabilityBoundingSet":    "",
		"NoNewPrivileges":          "yes",
		"ProtectSystem":            "strict",
	} {
		require.Equal(t, []string{want}, values[name], name)
	}
	require.NotRegexp(t, `(?m)^[^#].*(NODE_NAME|--node-name)`, read(t, "systemd/pod-pacemaker.service"), "at a node's first boot, systemd loads it before the host has its name")
	require.NotContains(t, values, "Requires", "the daemon must outlive containerd: hooks wait for its answer")
	require.NotContains(t, values, "BindsTo", "BindsTo would end the daemon, too")
}

// The version line is missing on purpose. The file says why.
func TestContainerdDropInEnablesNRI(t *testing.T) {
	t.Parallel()
	data := read(t, "containerd/nri.toml")
	var got map[string]any
	require.NoError(t, toml.Unmarshal([]byte(data), &got))
	require.Equal(t, map[string]any{
		"plugins": map[string]any{
			"io.containerd.nri.v1.nri": map[string]any{
				"disable":             false,
				"disable_connections": false,
				"socket_path":         "/var/run/nri/nri.sock",
			},
		},
	}, got)
}

func TestSamplesAreValid(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("samples/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		found, err := crd.Load(name)
		require.NoError(t, err)
		if found.Config == nil {
			require.NotEmpty(t, found.Policies, name)
			continue
		}
		if found.Config.Spec.GetMode() == v1alpha1.ModeDisabled {
			require.Empty(t, found.Config.Spec.NodeSelector, "%s: it is for all nodes", name)
			highest, err := crd.Load("../crd/testdata/valid/highest.yaml")
			require.NoError(t, err)
			require.Equal(t, highest.Config.Spec.Priority, found.Config.Spec.Priority, "%s: no other config wins", name)
			continue
		}
		require.NotEqual(t, v1alpha1.ThrottleConfig{}, found.Config.Spec.ThrottleConfig, "%s: a sample that holds nothing teaches nothing", name)
	}
}
